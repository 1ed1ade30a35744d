import subprocess, json, os, sys
res={"old":[], "new":[]}
for k in range(5):
    for tree,src in (("old",".old-src"),("new","src")):
        env=dict(os.environ,PYTHONPATH=f"{src}:.gpu-site",MOREFIT_CACHE_DIR=f"/tmp/c-{tree}-{k}",OMP_NUM_THREADS="1")
        r=subprocess.run(["taskset","-c","3",sys.executable,".bench_one.py"],env=env,capture_output=True,text=True)
        if r.returncode: print(r.stderr[-2000:]); sys.exit(1)
        res[tree].append(json.loads(r.stdout.splitlines()[-1]))
for key in res["old"][0]:
    o,n=(min(r[key] for r in res[t]) for t in ("old","new")); print(f"{key:24s} old {o*1e6:12.1f} us  new {n*1e6:12.1f} us  ratio {n/o:.3f}")
