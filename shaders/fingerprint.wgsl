// The checksum of src/preprocess/fingerprint.rs for each sample of a segment: two words a sample, which were zero before.
//
// A workgroup sums 256 * steps words of one sample; x counts workgroups within a sample, y and z count samples.

override sample_bytes: u32;
override steps: u32; // words a thread

struct Segment {
    skip: u32, // bytes before the first sample: a binding starts at aligned addresses only
    first: u32, // the first sample's place among the sums
    samples: u32,
    unused: u32,
}

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<atomic<u32>>;
@group(0) @binding(2) var<uniform> segment: Segment;

const GROUP = 256u;

var<workgroup> partial: array<vec2<u32>, GROUP>;

fn mix32(value: u32) -> u32 {
    var x = value;
    x ^= x >> 16u;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13u;
    x *= 0xC2B2AE35u;
    return x ^ (x >> 16u);
}

fn source_word(index: u32) -> u32 {
    if index < arrayLength(&source) {
        return source[index];
    }
    return 0u;
}

// Four bytes of a sample, which may start at any byte; zeros after its end.
fn sample_word(start: u32, position: u32) -> u32 {
    let offset = start + 4u * position;
    let shift = (offset & 3u) * 8u;
    var word = source_word(offset >> 2u) >> shift;
    if shift != 0u {
        word |= source_word((offset >> 2u) + 1u) << (32u - shift);
    }
    let rest = sample_bytes - 4u * position;
    if rest < 4u {
        word &= (1u << (8u * rest)) - 1u;
    }
    return word;
}

@compute @workgroup_size(GROUP)
fn fingerprint(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let sample = group.z * groups.y + group.y;
    let present = sample < segment.samples;
    let words = select(0u, (sample_bytes + 3u) / 4u, present);
    let start = segment.skip + sample * sample_bytes;
    var sum = vec2<u32>(0u);
    for (var turn = 0u; turn < steps; turn++) {
        // Neighbours in a workgroup read neighbouring words.
        let position = (group.x * steps + turn) * GROUP + local;
        if position < words {
            let word = sample_word(start, position);
            sum.x += mix32(word ^ mix32(position + 0x9E3779B9u));
            sum.y += mix32(word ^ mix32(position + 0x85EBCA6Bu));
        }
    }
    partial[local] = sum;
    workgroupBarrier();
    for (var width = GROUP / 2u; width > 0u; width /= 2u) {
        if local < width {
            partial[local] += partial[local + width];
        }
        workgroupBarrier();
    }
    let place = 2u * (segment.first + sample);
    if local == 0u && present && place + 1u < arrayLength(&sums) {
        atomicAdd(&sums[place], partial[0].x);
        atomicAdd(&sums[place + 1u], partial[0].y);
    }
}
