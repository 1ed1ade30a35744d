"""What finds, checks and copies columns that lie apart in memory, as LLVM IR; each function has one table of words."""

from __future__ import annotations

# ``__array_struct__``, numpy's C interface of an array: two, nd (int), kind (char), itemsize, flags (int), shape, strides, data
# (pointers). Doubles in the order of this machine, one after the other from a multiple of eight bytes on, are taken.
LOCATE = """\
define void @locate(ptr %job) {
entry:
  %objects = load ptr, ptr %job
  %pn = getelementptr i64, ptr %job, i64 1
  %count = load i64, ptr %pn
  %pg = getelementptr i64, ptr %job, i64 2
  %get = load ptr, ptr %pg
  %pp = getelementptr i64, ptr %job, i64 3
  %places = load ptr, ptr %pp
  %ps = getelementptr i64, ptr %job, i64 4
  %sizes = load ptr, ptr %ps
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %after, %store ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %ask, label %done
ask:
  %after = add i64 %k, 1
  %object = getelementptr ptr, ptr %objects, i64 %k
  %capsule = load ptr, ptr %object
  %array = call ptr %get(ptr %capsule, ptr null)
  %none = icmp eq ptr %array, null
  br i1 %none, label %store, label %look
look:
  %pd = getelementptr i8, ptr %array, i64 4
  %dimensions = load i32, ptr %pd
  %one = icmp eq i32 %dimensions, 1
  br i1 %one, label %take, label %store
take:
  %pk = getelementptr i8, ptr %array, i64 8
  %kind = load i8, ptr %pk
  %float = icmp eq i8 %kind, 102
  %pi = getelementptr i8, ptr %array, i64 12
  %itemsize = load i32, ptr %pi
  %eight = icmp eq i32 %itemsize, 8
  %pf = getelementptr i8, ptr %array, i64 16
  %flags = load i32, ptr %pf
  %own = and i32 %flags, 768
  %native = icmp eq i32 %own, 768
  %psh = getelementptr i8, ptr %array, i64 24
  %shape = load ptr, ptr %psh
  %size = load i64, ptr %shape
  %pst = getelementptr i8, ptr %array, i64 32
  %strides = load ptr, ptr %pst
  %stride = load i64, ptr %strides
  %dense = icmp eq i64 %stride, 8
  %short = icmp sle i64 %size, 1
  %joined = or i1 %dense, %short
  %pda = getelementptr i8, ptr %array, i64 40
  %address = load i64, ptr %pda
  %low = and i64 %address, 7
  %aligned = icmp eq i64 %low, 0
  %a = and i1 %float, %eight
  %b = and i1 %native, %joined
  %c = and i1 %a, %b
  %plain = and i1 %c, %aligned
  %taken = select i1 %plain, i64 %size, i64 -1
  %eighth = lshr i64 %address, 3
  br label %store
store:
  %found = phi i64 [ -1, %ask ], [ -1, %look ], [ %taken, %take ]
  %place = phi i64 [ 0, %ask ], [ 0, %look ], [ %eighth, %take ]
  %to = getelementptr i64, ptr %places, i64 %k
  store i64 %place, ptr %to
  %ts = getelementptr i64, ptr %sizes, i64 %k
  store i64 %found, ptr %ts
  br label %next
done:
  ret void
}"""

# takes blocks until none is left: whether numbers are outside a range or none, their sum and that of their magnitudes
EXAMINE = """\
declare <8 x double> @llvm.fabs.v8f64(<8 x double>)
declare double @llvm.fabs.f64(double)
declare double @llvm.vector.reduce.fadd.v8f64(double, <8 x double>)
declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>)
define void @examine(ptr %job) {
entry:
  %counter = load ptr, ptr %job
  %pn = getelementptr i64, ptr %job, i64 1
  %count = load i64, ptr %pn
  %pp = getelementptr i64, ptr %job, i64 2
  %places = load ptr, ptr %pp
  %ps = getelementptr i64, ptr %job, i64 3
  %sizes = load ptr, ptr %ps
  %pl = getelementptr i64, ptr %job, i64 4
  %range = load ptr, ptr %pl
  %po = getelementptr i64, ptr %job, i64 5
  %out = load ptr, ptr %po
  %low = load double, ptr %range
  %ph = getelementptr double, ptr %range, i64 1
  %high = load double, ptr %ph
  %l0 = insertelement <8 x double> poison, double %low, i64 0
  %lows = shufflevector <8 x double> %l0, <8 x double> poison, <8 x i32> zeroinitializer
  %h0 = insertelement <8 x double> poison, double %high, i64 0
  %highs = shufflevector <8 x double> %h0, <8 x double> poison, <8 x i32> zeroinitializer
  br label %next
next:
  %k = atomicrmw add ptr %counter, i64 1 monotonic
  %more = icmp slt i64 %k, %count
  br i1 %more, label %block, label %done
block:
  %kp = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %kp
  %address = shl i64 %place, 3
  %x = inttoptr i64 %address to ptr
  %ks = getelementptr i64, ptr %sizes, i64 %k
  %size = load i64, ptr %ks
  %full = and i64 %size, -8
  %some = icmp sgt i64 %full, 0
  br i1 %some, label %loop, label %add
loop:
  %i = phi i64 [ 0, %block ], [ %ni, %loop ]
  %bad = phi <8 x i1> [ zeroinitializer, %block ], [ %nbad, %loop ]
  %sum = phi <8 x double> [ zeroinitializer, %block ], [ %nsum, %loop ]
  %abs = phi <8 x double> [ zeroinitializer, %block ], [ %nabs, %loop ]
  %px = getelementptr double, ptr %x, i64 %i
  %v = load <8 x double>, ptr %px, align 8
  %below = fcmp ult <8 x double> %v, %lows
  %above = fcmp ugt <8 x double> %v, %highs
  %outside = or <8 x i1> %below, %above
  %nbad = or <8 x i1> %bad, %outside
  %nsum = fadd <8 x double> %sum, %v
  %magnitude = call <8 x double> @llvm.fabs.v8f64(<8 x double> %v)
  %nabs = fadd <8 x double> %abs, %magnitude
  %ni = add i64 %i, 8
  %go = icmp slt i64 %ni, %full
  br i1 %go, label %loop, label %add
add:
  %abad = phi <8 x i1> [ zeroinitializer, %block ], [ %nbad, %loop ]
  %asum = phi <8 x double> [ zeroinitializer, %block ], [ %nsum, %loop ]
  %aabs = phi <8 x double> [ zeroinitializer, %block ], [ %nabs, %loop ]
  %anybad = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %abad)
  %rsum = call reassoc double @llvm.vector.reduce.fadd.v8f64(double 0.0, <8 x double> %asum)
  %rabs = call reassoc double @llvm.vector.reduce.fadd.v8f64(double 0.0, <8 x double> %aabs)
  br label %rest
rest:
  %j = phi i64 [ %full, %add ], [ %nj, %one ]
  %jbad = phi i1 [ %anybad, %add ], [ %obad, %one ]
  %jsum = phi double [ %rsum, %add ], [ %osum, %one ]
  %jabs = phi double [ %rabs, %add ], [ %oabs, %one ]
  %left = icmp slt i64 %j, %size
  br i1 %left, label %one, label %store
one:
  %py = getelementptr double, ptr %x, i64 %j
  %y = load double, ptr %py
  %ybelow = fcmp ult double %y, %low
  %yabove = fcmp ugt double %y, %high
  %youtside = or i1 %ybelow, %yabove
  %obad = or i1 %jbad, %youtside
  %osum = fadd double %jsum, %y
  %ymagnitude = call double @llvm.fabs.f64(double %y)
  %oabs = fadd double %jabs, %ymagnitude
  %nj = add i64 %j, 1
  br label %rest
store:
  %row = mul i64 %k, 3
  %to = getelementptr double, ptr %out, i64 %row
  %isbad = uitofp i1 %jbad to double
  store double %isbad, ptr %to
  %tosum = getelementptr double, ptr %to, i64 1
  store double %jsum, ptr %tosum
  %toabs = getelementptr double, ptr %to, i64 2
  store double %jabs, ptr %toabs
  br label %next
done:
  ret void
}"""

# copies numbers from one place within a piece on, over as many pieces as it takes
COPY = """\
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.smin.i64(i64, i64)
define void @copy_run(ptr %job) {
entry:
  %places = load ptr, ptr %job
  %ps = getelementptr i64, ptr %job, i64 1
  %sizes = load ptr, ptr %ps
  %pk = getelementptr i64, ptr %job, i64 2
  %first = load i64, ptr %pk
  %pb = getelementptr i64, ptr %job, i64 3
  %begin = load i64, ptr %pb
  %pc = getelementptr i64, ptr %job, i64 4
  %count = load i64, ptr %pc
  %pt = getelementptr i64, ptr %job, i64 5
  %target = load ptr, ptr %pt
  br label %next
next:
  %k = phi i64 [ %first, %entry ], [ %nk, %piece ]
  %skip = phi i64 [ %begin, %entry ], [ 0, %piece ]
  %done = phi i64 [ 0, %entry ], [ %ndone, %piece ]
  %left = sub i64 %count, %done
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %piece, label %end
piece:
  %kp = getelementptr i64, ptr %places, i64 %k
  %place = load i64, ptr %kp
  %ks = getelementptr i64, ptr %sizes, i64 %k
  %size = load i64, ptr %ks
  %rest = sub i64 %size, %skip
  %some = call i64 @llvm.smin.i64(i64 %rest, i64 %left)
  %from = add i64 %place, %skip
  %address = shl i64 %from, 3
  %source = inttoptr i64 %address to ptr
  %to = getelementptr double, ptr %target, i64 %done
  %bytes = shl i64 %some, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %source, i64 %bytes, i1 false)
  %nk = add i64 %k, 1
  %ndone = add i64 %done, %some
  br label %next
end:
  ret void
}"""
