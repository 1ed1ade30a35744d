// The angular density of B0 -> K*0 mu+ mu- for RooFit: value, vectorised values, integral (it is 1), generator.
#include <RooAbsPdf.h>
#include <RooArgSet.h>
#include <RooRandom.h>
#include <RooRealProxy.h>

#include <cmath>

struct KstarAngles {
   static double density(double ctl, double ctk, double phi, const double *p)
   {
      const double sk2 = 1 - ctk * ctk, sl2 = 1 - ctl * ctl, sl = std::sqrt(sl2);
      const double s2k = 2 * ctk * std::sqrt(sk2), s2l = 2 * ctl * sl, c2l = 2 * ctl * ctl - 1;
      const double c = std::cos(phi), s = std::sin(phi), c2 = 2 * c * c - 1, s2 = 2 * s * c;
      const double sum = (1 - p[0]) * sk2 * (0.75 + 0.25 * c2l) + p[0] * ctk * ctk * (1 - c2l) +
                         sk2 * sl2 * (p[1] * c2 + p[7] * s2) + s2k * s2l * (p[2] * c + p[6] * s) +
                         s2k * sl * (p[3] * c + p[5] * s) + 4. / 3. * p[4] * sk2 * ctl;
      return 9. / (32. * M_PI) * sum;
   }
};

class RooKstarMuMu : public RooAbsPdf {
public:
   RooKstarMuMu() {}
   RooKstarMuMu(const char *name, const char *title, RooAbsReal &ctl, RooAbsReal &ctk, RooAbsReal &phi, RooAbsReal &FL,
                RooAbsReal &S3, RooAbsReal &S4, RooAbsReal &S5, RooAbsReal &AFB, RooAbsReal &S7, RooAbsReal &S8,
                RooAbsReal &S9)
      : RooAbsPdf(name, title), ctl_("ctl", "", this, ctl), ctk_("ctk", "", this, ctk), phi_("phi", "", this, phi),
        FL_("FL", "", this, FL), S3_("S3", "", this, S3), S4_("S4", "", this, S4), S5_("S5", "", this, S5),
        AFB_("AFB", "", this, AFB), S7_("S7", "", this, S7), S8_("S8", "", this, S8), S9_("S9", "", this, S9)
   {
   }
   RooKstarMuMu(const RooKstarMuMu &other, const char *name = nullptr)
      : RooAbsPdf(other, name), ctl_("ctl", this, other.ctl_), ctk_("ctk", this, other.ctk_),
        phi_("phi", this, other.phi_), FL_("FL", this, other.FL_), S3_("S3", this, other.S3_),
        S4_("S4", this, other.S4_), S5_("S5", this, other.S5_), AFB_("AFB", this, other.AFB_),
        S7_("S7", this, other.S7_), S8_("S8", this, other.S8_), S9_("S9", this, other.S9_)
   {
   }
   TObject *clone(const char *name) const override { return new RooKstarMuMu(*this, name); }

   Int_t getAnalyticalIntegral(RooArgSet &all, RooArgSet &done, const char * = nullptr) const override
   {
      return matchArgs(all, done, ctl_, ctk_, phi_) ? 1 : 0;
   }
   double analyticalIntegral(Int_t, const char * = nullptr) const override { return 1.; }

   Int_t getGenerator(const RooArgSet &wanted, RooArgSet &done, bool = true) const override
   {
      return matchArgs(wanted, done, ctl_, ctk_, phi_) ? 1 : 0;
   }
   void initGenerator(Int_t) override
   {
      fill(parameters_);
      const double *p = parameters_;
      // no term exceeds its coefficient, but for FL (2 at ctk = 1, ctl = 0) and 1 - FL (1 at ctk = 0, |ctl| = 1)
      most_ = 9. / (32. * M_PI) *
              (std::max(2 * p[0], 1 - p[0]) + std::hypot(p[1], p[7]) + std::hypot(p[2], p[6]) +
               std::hypot(p[3], p[5]) + 4. / 3. * std::abs(p[4]));
   }
   void generateEvent(Int_t) override
   {
      TRandom *random = RooRandom::randomGenerator();
      double ctl, ctk, phi;
      do {
         ctl = random->Uniform(-1, 1);
         ctk = random->Uniform(-1, 1);
         phi = random->Uniform(-M_PI, M_PI);
      } while (random->Uniform(most_) > KstarAngles::density(ctl, ctk, phi, parameters_));
      ctl_ = ctl;
      ctk_ = ctk;
      phi_ = phi;
   }

protected:
   double evaluate() const override
   {
      double p[8];
      fill(p);
      return KstarAngles::density(ctl_, ctk_, phi_, p);
   }
   void doEval(RooFit::EvalContext &context) const override
   {
      auto out = context.output();
      auto ctl = context.at(ctl_), ctk = context.at(ctk_), phi = context.at(phi_);
      const RooRealProxy *proxies[] = {&FL_, &S3_, &S4_, &S5_, &AFB_, &S7_, &S8_, &S9_};
      double p[8];
      for (int k = 0; k < 8; ++k)
         p[k] = context.at(*proxies[k])[0];
      for (std::size_t i = 0; i < out.size(); ++i)
         out[i] = KstarAngles::density(ctl[i], ctk[i], phi[i], p);
   }

private:
   void fill(double *p) const
   {
      p[0] = FL_, p[1] = S3_, p[2] = S4_, p[3] = S5_, p[4] = AFB_, p[5] = S7_, p[6] = S8_, p[7] = S9_;
   }
   RooRealProxy ctl_, ctk_, phi_, FL_, S3_, S4_, S5_, AFB_, S7_, S8_, S9_;
   double parameters_[8] = {};
   double most_ = 0;
};
