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

// the logarithm of a product from that of its mantissas and its exponent; log(2) in two parts, so that it is exact
double logarithm(const double high, const double low, const double exponent)
{
    double sum = exponent * 0.6931471824645996, lost = 0.0;
    add(&sum, &lost, high);
    return sum + (lost + exponent * (-1.904654299957768e-09) + low);
}


__kernel void prepare(const int sets, __global const double *parameters, __global double *scalars)
{
    const int set = get_global_id(0);
    if (set >= sets) return;
    __global const double *point = parameters + (long)set * 4;
    __global double *made = scalars + (long)set * 5;
    const double p_mu = point[0];
    const double p_sigma = point[1];
    const double p_alpha = point[2];
    const double p_fsig = point[3];
    const double p0 = 1.2533141373155001 * p_sigma;
    const double p1 = 1.0 / p_sigma;
    const double p2 = 0.7071067811865476 * p1;
    const double p3 = 0.5 * p2;
    const double p4 = 2.0 * p3;
    const double p6 = 6.0 - p_mu;
    const double p7 = fabs(p6);
    const double p8 = p2 * p7;
    const double p9 = p4 + p8;
    const double p10 = call_erfc(p9);
    const double p13 = p8 - p4;
    const double p14 = call_erfc(p13);
    const double p15 = p14 - p10;
    const double p16 = p0 * p15;
    const double p17 = 1.0 / p16;
    const double p18 = p_fsig * p17;
    const double p19 = p1 * p1;
    const double p20 = (-0.5) * p19;
    const double p21 = 1.4426950408889634 * p20;
    const double p22 = 2.0 * p_alpha;
    const double p23 = fabs(p22);
    const double p24 = (p23 < 1.0) ? 1.0 : 0.0;
    const double p25 = 4.110317623312165e-19 * p22;
    const double p26 = 8.22063524662433e-18 + p25;
    const double p27 = p22 * p26;
    const double p28 = 1.5619206968586225e-16 + p27;
    const double p29 = p22 * p28;
    const double p30 = 2.8114572543455206e-15 + p29;
    const double p31 = p30 * p22;
    const double p32 = 4.779477332387385e-14 + p31;
    const double p33 = p22 * p32;
    const double p34 = 7.647163731819816e-13 + p33;
    const double p35 = p22 * p34;
    const double p36 = 1.1470745597729725e-11 + p35;
    const double p37 = p36 * p22;
    const double p38 = 1.6059043836821613e-10 + p37;
    const double p39 = p38 * p22;
    const double p40 = 2.08767569878681e-09 + p39;
    const double p41 = p22 * p40;
    const double p42 = 2.505210838544172e-08 + p41;
    const double p43 = p42 * p22;
    const double p44 = 2.755731922398589e-07 + p43;
    const double p45 = p22 * p44;
    const double p46 = 2.7557319223985893e-06 + p45;
    const double p47 = p22 * p46;
    const double p48 = 2.48015873015873e-05 + p47;
    const double p49 = p48 * p22;
    const double p50 = 0.0001984126984126984 + p49;
    const double p51 = p50 * p22;
    const double p52 = 0.001388888888888889 + p51;
    const double p53 = p52 * p22;
    const double p54 = 0.008333333333333333 + p53;
    const double p55 = p54 * p22;
    const double p56 = 0.041666666666666664 + p55;
    const double p57 = p56 * p22;
    const double p58 = 0.16666666666666666 + p57;
    const double p59 = p22 * p58;
    const double p60 = 0.5 + p59;
    const double p61 = p60 * p22;
    const double p62 = 1.0 + p61;
    const double p63 = expm1(p22);
    const double p64 = 1.0 / p22;
    const double p65 = p63 * p64;
    const double p66 = (p24 != 0) ? p62 : p65;
    const double p67 = 1.0 / p66;
    const double p68 = 0.5 * p67;
    const double p70 = 1.0 - p_fsig;
    const double p71 = p68 * p70;
    const double p72 = 1.4426950408889634 * p_alpha;
    made[0] = p18;
    made[1] = p21;
    made[2] = p_mu;
    made[3] = p71;
    made[4] = p72;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void sums(
    __global const double *scalars,
    __global const block_of_events *blocks, const int first_block,
    __global double *partials,
    __global const real *c_m_all, const long c_m_first, const long c_m_step)
{
    const block_of_events block = blocks[first_block + get_group_id(0)];
    const int item = get_local_id(0), set = block.set, count = block.count;
    const real s_b0 = (real)scalars[set * 5 + 0];
    const real s_e0 = (real)scalars[set * 5 + 1];
    const real s_mu = (real)scalars[set * 5 + 2];
    const real s_b2 = (real)scalars[set * 5 + 3];
    const real s_e1 = (real)scalars[set * 5 + 4];
    __global double *partial = partials + (long)block.place * 3;
    __local double scratch[384], *own_scratch = scratch + item;
    double product0 = 1.0;
    int exponent0 = 0;
    ulong worst0 = 0;
    for (int k = item; k < count; k += GROUP) {
        const long event = block.begin + k;
        const real c_m = c_m_all[c_m_first + c_m_step * set + event];
        const real v1 = c_m - s_mu;
        const real v2 = v1 * v1;
        const real v3 = s_e0 * v2;
        const real v4 = exp2(v3);
        const real v5 = s_b0 * v4;
        const real v6 = (-5.0) + c_m;
        const real v7 = s_e1 * v6;
        const real v8 = exp2(v7);
        const real v9 = s_b2 * v8;
        const real v10 = v5 + v9;
        const ulong bits0 = as_ulong((double)v10), above0 = bits0 - 0x10000000000000UL;
        product0 *= as_double((bits0 & 0xfffffffffffffUL) | 0x3ff0000000000000UL);
        exponent0 += (int)(above0 >> 52);
        worst0 = max(worst0, above0);
    }
    own_scratch[0 * GROUP] = log(product0);
    own_scratch[1 * GROUP] = exponent0;
    own_scratch[2 * GROUP] = worst0 >= 0x7fe0000000000000UL ? 1.0 : 0.0;
    add_items(scratch, 3, item);
    for (int k = item; k < 3; k += GROUP) partial[k] = scratch[k * GROUP];
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void combine(
    __global const int *first_task, __global const double *partials, __global double *totals,
    __global const double *scalars, __global const long *sizes, const int sizes_step,
    __global double *out)
{
    const int set = get_group_id(0), item = get_local_id(0);
    __global double *high = totals + (long)set * 6, *low = high + 3;
    __global double *row = out + (long)set * 2;
    __local double sums[GROUP], corrections[GROUP];
    const int lane = item / 3, column = item % 3;
    for (int from = 0; from < 3; from += 3) {
        const int word = from + column;
        const int mine = lane < 42 && word < 3;
        double sum = 0.0, correction = 0.0;
        if (mine)
            for (int task = first_task[set] + lane; task < first_task[set + 1]; task += 42)
                add(&sum, &correction, partials[(long)task * 3 + word]);
        sums[item] = sum;
        corrections[item] = correction;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (mine && lane == 0) {
            for (int other = item + 3; other < 126; other += 3) {
                add(&sum, &correction, sums[other]);
                correction += corrections[other];
            }
            high[word] = sum;
            low[word] = correction;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (item == 0) {
        const double events = sizes[set * sizes_step];
        row[0] = logarithm(high[0], low[0], high[1] - events * 1022.0);
        row[1] = high[2];
    }
}

typedef struct { double numbers[4]; } one_set;  // of parameters

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void evaluate(
    const one_set given,
    __global const double *parameters,
    const int sets, __global const long *starts, __global const long *sizes, const int sizes_step,
    __global double *out,
    __global const real *c_m_all, const long c_m_first, const long c_m_step)
{
    const int set = get_group_id(0), item = get_local_id(0), count = sizes[set * sizes_step];
    const long begin = starts[set * sizes_step];
    __local double scalars[5], high[3];
    __local double scratch[384], *own_scratch = scratch + item;
    if (item == 0) {
        const double p_mu = sets == 1 ? given.numbers[0] : parameters[set * 4 + 0];
        const double p_sigma = sets == 1 ? given.numbers[1] : parameters[set * 4 + 1];
        const double p_alpha = sets == 1 ? given.numbers[2] : parameters[set * 4 + 2];
        const double p_fsig = sets == 1 ? given.numbers[3] : parameters[set * 4 + 3];
        const double p0 = 1.2533141373155001 * p_sigma;
        const double p1 = 1.0 / p_sigma;
        const double p2 = 0.7071067811865476 * p1;
        const double p3 = 0.5 * p2;
        const double p4 = 2.0 * p3;
        const double p6 = 6.0 - p_mu;
        const double p7 = fabs(p6);
        const double p8 = p2 * p7;
        const double p9 = p4 + p8;
        const double p10 = call_erfc(p9);
        const double p13 = p8 - p4;
        const double p14 = call_erfc(p13);
        const double p15 = p14 - p10;
        const double p16 = p0 * p15;
        const double p17 = 1.0 / p16;
        const double p18 = p_fsig * p17;
        const double p19 = p1 * p1;
        const double p20 = (-0.5) * p19;
        const double p21 = 1.4426950408889634 * p20;
        const double p22 = 2.0 * p_alpha;
        const double p23 = fabs(p22);
        const double p24 = (p23 < 1.0) ? 1.0 : 0.0;
        const double p25 = 4.110317623312165e-19 * p22;
        const double p26 = 8.22063524662433e-18 + p25;
        const double p27 = p22 * p26;
        const double p28 = 1.5619206968586225e-16 + p27;
        const double p29 = p22 * p28;
        const double p30 = 2.8114572543455206e-15 + p29;
        const double p31 = p30 * p22;
        const double p32 = 4.779477332387385e-14 + p31;
        const double p33 = p22 * p32;
        const double p34 = 7.647163731819816e-13 + p33;
        const double p35 = p22 * p34;
        const double p36 = 1.1470745597729725e-11 + p35;
        const double p37 = p36 * p22;
        const double p38 = 1.6059043836821613e-10 + p37;
        const double p39 = p38 * p22;
        const double p40 = 2.08767569878681e-09 + p39;
        const double p41 = p22 * p40;
        const double p42 = 2.505210838544172e-08 + p41;
        const double p43 = p42 * p22;
        const double p44 = 2.755731922398589e-07 + p43;
        const double p45 = p22 * p44;
        const double p46 = 2.7557319223985893e-06 + p45;
        const double p47 = p22 * p46;
        const double p48 = 2.48015873015873e-05 + p47;
        const double p49 = p48 * p22;
        const double p50 = 0.0001984126984126984 + p49;
        const double p51 = p50 * p22;
        const double p52 = 0.001388888888888889 + p51;
        const double p53 = p52 * p22;
        const double p54 = 0.008333333333333333 + p53;
        const double p55 = p54 * p22;
        const double p56 = 0.041666666666666664 + p55;
        const double p57 = p56 * p22;
        const double p58 = 0.16666666666666666 + p57;
        const double p59 = p22 * p58;
        const double p60 = 0.5 + p59;
        const double p61 = p60 * p22;
        const double p62 = 1.0 + p61;
        const double p63 = expm1(p22);
        const double p64 = 1.0 / p22;
        const double p65 = p63 * p64;
        const double p66 = (p24 != 0) ? p62 : p65;
        const double p67 = 1.0 / p66;
        const double p68 = 0.5 * p67;
        const double p70 = 1.0 - p_fsig;
        const double p71 = p68 * p70;
        const double p72 = 1.4426950408889634 * p_alpha;
        scalars[0] = p18;
        scalars[1] = p21;
        scalars[2] = p_mu;
        scalars[3] = p71;
        scalars[4] = p72;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const real s_b0 = (real)scalars[0];
    const real s_e0 = (real)scalars[1];
    const real s_mu = (real)scalars[2];
    const real s_b2 = (real)scalars[3];
    const real s_e1 = (real)scalars[4];
    double product0 = 1.0;
    int exponent0 = 0;
    ulong worst0 = 0;
    double logs0 = 0.0;
    int taken = 0;
    for (int k = item; k < count; k += GROUP) {
        const long event = begin + k;
        const real c_m = c_m_all[c_m_first + c_m_step * set + event];
        const real v1 = c_m - s_mu;
        const real v2 = v1 * v1;
        const real v3 = s_e0 * v2;
        const real v4 = exp2(v3);
        const real v5 = s_b0 * v4;
        const real v6 = (-5.0) + c_m;
        const real v7 = s_e1 * v6;
        const real v8 = exp2(v7);
        const real v9 = s_b2 * v8;
        const real v10 = v5 + v9;
        const ulong bits0 = as_ulong((double)v10), above0 = bits0 - 0x10000000000000UL;
        product0 *= as_double((bits0 & 0xfffffffffffffUL) | 0x3ff0000000000000UL);
        exponent0 += (int)(above0 >> 52);
        worst0 = max(worst0, above0);
        if (++taken % 256 == 0) {
            logs0 += log(product0), product0 = 1.0;
        }
    }
    own_scratch[0 * GROUP] = logs0 + log(product0);
    own_scratch[1 * GROUP] = exponent0;
    own_scratch[2 * GROUP] = worst0 >= 0x7fe0000000000000UL ? 1.0 : 0.0;
    add_items(scratch, 3, item);
    for (int k = item; k < 3; k += GROUP) high[k] = scratch[k * GROUP];
    barrier(CLK_LOCAL_MEM_FENCE);
    __global double *row = out + (long)set * 2;
    if (item == 0) {
        const double events = count;
        row[0] = logarithm(high[0], 0.0, high[1] - events * 1022.0);
        row[1] = high[2];
    }
}
