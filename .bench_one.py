import json, time, sys, numpy as np
t0=time.perf_counter(); import morefit as mf; imp=time.perf_counter()-t0
from morefit.backend.cpu import Cpu
sys.path.insert(0,"benchmarks")
def mass():
    m=mf.Observable("m",5.0,6.0); mu=mf.Parameter("mu",5.28,5.2,5.4); s=mf.Parameter("sigma",.06,.01,.2); a=mf.Parameter("alpha",-1.,-10,10); f=mf.Parameter("fsig",.3,0,1)
    return mf.Sum([mf.Gaussian(m,mu,s),mf.Exponential(m,a)],fractions=[f])
def ang():
    o=[mf.Observable("ctl",-1,1),mf.Observable("ctk",-1,1),mf.Observable("phi",-np.pi,np.pi)]
    v=dict(FL=.6,S3=.0,S4=.1,S5=-.1,AFB=.1,S7=.0,S8=.0,S9=.0)
    return mf.physics.KstarMuMu(*o,*(mf.Parameter(n,x,-1,1) for n,x in v.items()))
one=Cpu(threads=1); out={"import":imp}
def best(f,n):
    ts=[]
    for _ in range(n):
        t=time.perf_counter(); f(); ts.append(time.perf_counter()-t)
    return min(ts)
for name,M in (("mass",mass()),("angular",ang())):
    t=time.perf_counter(); d=mf.generate(M,1000,seed=1,backend=one); mf.fit(M,d,backend=one); out[name+" first fit"]=time.perf_counter()-t
    for N in (1000,100000):
        d=mf.generate(M,N,seed=1,backend=one); L=mf.Likelihood(M,d,backend=one); x=[p.start for p in L.parameters]
        out[f"{name} value {N}"]=best(lambda: L.value(x),30); out[f"{name} hessian {N}"]=best(lambda: L.hessian(x),30)
        out[f"{name} fit {N}"]=best(lambda: mf.fit(L),20 if N==1000 else 6)
        out[f"{name} generate {N}"]=best(lambda: mf.generate(M,N,seed=2,backend=one),10)
    for N,T in ((1000,2000),(10000,200)):
        mf.toy_study(M,toys=50,events=N,seed=1,backend=one,progress=False)
        out[f"{name} toys of {N}"]=best(lambda: mf.toy_study(M,toys=T,events=N,seed=1,backend=one,progress=False),3)/T
print(json.dumps(out))
