// kernel sample (SAMPLE, DOUBLE) in OpenCL C
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define GROUP 128  // work items in a group
typedef double real;  // of the lines of an event

// a block of the events of a set: where it begins among all events and in its set, and where its results go
typedef struct { long begin, event; int set, count, place, unused; } block_of_events;

// a number in [0, 1) of 53 bits
double uniform_of(const uint high, const uint low)
{
    return (double)(((ulong)high << 21) | (low >> 11)) * 0x1p-53;
}

// Philox4x32-10 (Salmon et al., SC11): two numbers from a key and a counter
void philox(uint c0, uint c1, uint c2, uint c3, const ulong seed, double *uniform)
{
    uint k0 = (uint)seed, k1 = (uint)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint high0 = mul_hi(0xd2511f53u, c0), low0 = 0xd2511f53u * c0;
        const uint high1 = mul_hi(0xcd9e8d57u, c2), low1 = 0xcd9e8d57u * c2;
        c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
        k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
    }
    uniform[0] = uniform_of(c0, c1);
    uniform[1] = uniform_of(c2, c3);
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void sample(
    __global const double *scalars,
    __global const block_of_events *blocks, const int first_block,
    const ulong seed, const ulong first_toy, __global int *report, const long out_first,
    __global double *out0)
{
    const block_of_events block = blocks[first_block + get_group_id(0)];
    const int item = get_local_id(0), set = block.set, count = block.count;
    const ulong toy = first_toy + set;
    __local ushort again[2][8 * GROUP];  // events to draw again, in this turn and in the next
    __local int counts[3];  // how many, in the last turn, in this one and in the next
    int overs = 0, fails = 0;
    for (int n = item; n < 3; n += GROUP) counts[n] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int begin = 0, turn = 0; begin < count; begin += 8 * GROUP) {
        int left = min(count - begin, 8 * GROUP);
        for (int draw = 0; left > 0; draw++, turn++) {
            __local int *rejected = counts + (turn + 1) % 3;
            if (item == 0) counts[(turn + 2) % 3] = 0;
            for (int n = item; n < left; n += GROUP) {
                const int place = draw ? again[turn % 2][n] : n, k = begin + place;
                const long event = block.event + k;
                double uniform[2];
                philox((uint)event, (uint)toy, draw * 1 + 0, (uint)(toy >> 32), seed, uniform + 0);
                const double c_uniform_0 = uniform[0];
                const double c_uniform_1 = uniform[1];
                const double v0 = (c_uniform_1 < c_uniform_0) ? 1.0 : 0.0;
                const double x0 = c_uniform_0;
                out0[out_first + block.begin + k] = x0;
                overs += 0.0 != 0;
                if (v0 == 0) {
                    if (draw + 1 < 10000) again[(turn + 1) % 2][atomic_add(rejected, 1)] = place;
                    else fails++;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            left = *rejected;
        }
    }
    if (overs) atomic_add(report, overs);
    if (fails) atomic_add(report + 1, fails);
}
