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
    __global double *out0,
    __global double *out1)
{
    const block_of_events block = blocks[first_block + get_group_id(0)];
    const int item = get_local_id(0), set = block.set, count = block.count;
    const ulong toy = first_toy + set;
    for (int k = item; k < count; k += GROUP) {
        const long event = block.event + k;
        const int draw = 0;
        double uniform[2];
        philox((uint)event, (uint)toy, draw * 1 + 0, (uint)(toy >> 32), seed, uniform + 0);
        const double c_uniform_0 = uniform[0];
        const double c_uniform_1 = uniform[1];
        const double x0 = c_uniform_0;
        const double x1 = c_uniform_1;
        out0[out_first + block.begin + k] = x0;
        out1[out_first + block.begin + k] = x1;
    }
}
