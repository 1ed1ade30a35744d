// kernel value (SUM, DOUBLE) in OpenCL C
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define GROUP 128  // work items in a group
typedef double real;  // of the lines of an event

// a block of the events of a set: where it begins among all events and in its set, and where its results go
typedef struct { long begin, event; int set, count, place, unused; } block_of_events;

__attribute__((noinline)) double call_erfc(const double x0) { return erfc(x0); }
// add scratch[word][item] over the items of a group, always in the same order, into scratch[word][0]
void add_items(__local double *scratch, const int words, const int item)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_way = GROUP / 2, bits = 30 - clz(GROUP); half_way > 0; half_way /= 2, bits--) {
        for (int k = item; k < words * half_way; k += GROUP) {
            __local double *row = scratch + (k >> bits) * GROUP + (k & (half_way - 1));
            row[0] += row[half_way];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// add a number, and to the correction what the addition loses (Knuth's two-sum)
void add(double *sum, double *correction, const double x)
{
    const double total = *sum + x, part = total - *sum;
    *correction += (*sum - (total - part)) + (x - part);
    *sum = total;
}


__kernel void prepare(const int sets, __global const double *parameters, __global double *scalars)
{
    const int set = get_global_id(0);
    if (set >= sets) return;
    __global const double *point = parameters + (long)set * 2;
    __global double *made = scalars + (long)set * 3;
    const double p_mu = point[0];
    const double p_sigma = point[1];
    const double p0 = 1.0 / p_sigma;
    const double p1 = p0 * p0;
    const double p2 = (-0.5) * p1;
    const double p3 = 1.2533141373155001 * p_sigma;
    const double p4 = 0.7071067811865476 * p0;
    const double p5 = 0.5 * p4;
    const double p6 = 10.0 * p5;
    const double p8 = -p_mu;
    const double p9 = fabs(p8);
    const double p10 = p4 * p9;
    const double p11 = p10 - p6;
    const double p12 = call_erfc(p11);
    const double p13 = p10 + p6;
    const double p14 = call_erfc(p13);
    const double p16 = p12 - p14;
    const double p17 = p3 * p16;
    const double p18 = log(p17);
    const double p19 = -p18;
    made[0] = p2;
    made[1] = p_mu;
    made[2] = p19;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void sums(
    __global const double *scalars,
    __global const block_of_events *blocks, const int first_block,
    __global double *partials,
    __global const real *c_x_all, const long c_x_first, const long c_x_step)
{
    const block_of_events block = blocks[first_block + get_group_id(0)];
    const int item = get_local_id(0), set = block.set, count = block.count;
    const real s_b1 = (real)scalars[set * 3 + 0];
    const real s_mu = (real)scalars[set * 3 + 1];
    __global double *partial = partials + (long)block.place * 2;
    __local double scratch[256], *own_scratch = scratch + item;
    double sum0 = 0.0, lost0 = 0.0;
    for (int k = item; k < count; k += GROUP) {
        const long event = block.begin + k;
        const real c_x = c_x_all[c_x_first + c_x_step * set + event];
        const real v1 = c_x - s_mu;
        const real v2 = v1 * v1;
        const real v3 = s_b1 * v2;
        const double new0 = sum0 + v3, part0 = new0 - sum0;
        lost0 += (sum0 - (new0 - part0)) + (v3 - part0);
        sum0 = new0;
    }
    own_scratch[0 * GROUP] = sum0;
    own_scratch[1 * GROUP] = lost0;
    add_items(scratch, 2, item);
    for (int k = item; k < 2; k += GROUP) partial[k] = scratch[k * GROUP];
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void combine(
    __global const int *first_task, __global const double *partials, __global double *totals,
    __global const double *scalars, __global const long *sizes, const int sizes_step,
    __global double *out)
{
    const int set = get_group_id(0), item = get_local_id(0);
    __global double *high = totals + (long)set * 4, *low = high + 2;
    __global double *row = out + (long)set * 2;
    __local double sums[GROUP], corrections[GROUP];
    const int lane = item / 2, column = item % 2;
    for (int from = 0; from < 2; from += 2) {
        const int word = from + column;
        const int mine = lane < 64 && word < 2;
        double sum = 0.0, correction = 0.0;
        if (mine)
            for (int task = first_task[set] + lane; task < first_task[set + 1]; task += 64)
                add(&sum, &correction, partials[(long)task * 2 + word]);
        sums[item] = sum;
        corrections[item] = correction;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (mine && lane == 0) {
            for (int other = item + 2; other < 128; other += 2) {
                add(&sum, &correction, sums[other]);
                correction += corrections[other];
            }
            high[word] = sum;
            low[word] = correction;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int k = item; k < 2; k += GROUP) row[k] = 0.0;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (item == 0) {
        const double events = sizes[set * sizes_step];
        row[0] = (high[0] + (low[0] + (high[1] + low[1]))) + events * scalars[set * 3 + 2];
    }
}

typedef struct { double numbers[2]; } one_set;  // of parameters

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void evaluate(
    const one_set given,
    __global const double *parameters,
    const int sets, __global const long *starts, __global const long *sizes, const int sizes_step,
    __global double *out,
    __global const real *c_x_all, const long c_x_first, const long c_x_step)
{
    const int set = get_group_id(0), item = get_local_id(0), count = sizes[set * sizes_step];
    const long begin = starts[set * sizes_step];
    __local double scalars[3], high[2];
    __local double scratch[256], *own_scratch = scratch + item;
    if (item == 0) {
        const double p_mu = sets == 1 ? given.numbers[0] : parameters[set * 2 + 0];
        const double p_sigma = sets == 1 ? given.numbers[1] : parameters[set * 2 + 1];
        const double p0 = 1.0 / p_sigma;
        const double p1 = p0 * p0;
        const double p2 = (-0.5) * p1;
        const double p3 = 1.2533141373155001 * p_sigma;
        const double p4 = 0.7071067811865476 * p0;
        const double p5 = 0.5 * p4;
        const double p6 = 10.0 * p5;
        const double p8 = -p_mu;
        const double p9 = fabs(p8);
        const double p10 = p4 * p9;
        const double p11 = p10 - p6;
        const double p12 = call_erfc(p11);
        const double p13 = p10 + p6;
        const double p14 = call_erfc(p13);
        const double p16 = p12 - p14;
        const double p17 = p3 * p16;
        const double p18 = log(p17);
        const double p19 = -p18;
        scalars[0] = p2;
        scalars[1] = p_mu;
        scalars[2] = p19;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const real s_b1 = (real)scalars[0];
    const real s_mu = (real)scalars[1];
    double sum0 = 0.0, lost0 = 0.0;
    for (int k = item; k < count; k += GROUP) {
        const long event = begin + k;
        const real c_x = c_x_all[c_x_first + c_x_step * set + event];
        const real v1 = c_x - s_mu;
        const real v2 = v1 * v1;
        const real v3 = s_b1 * v2;
        const double new0 = sum0 + v3, part0 = new0 - sum0;
        lost0 += (sum0 - (new0 - part0)) + (v3 - part0);
        sum0 = new0;
    }
    own_scratch[0 * GROUP] = sum0;
    own_scratch[1 * GROUP] = lost0;
    add_items(scratch, 2, item);
    for (int k = item; k < 2; k += GROUP) high[k] = scratch[k * GROUP];
    barrier(CLK_LOCAL_MEM_FENCE);
    __global double *row = out + (long)set * 2;
    for (int k = item; k < 2; k += GROUP) row[k] = 0.0;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (item == 0) {
        const double events = count;
        row[0] = (high[0] + (high[1])) + events * scalars[2];
    }
}
