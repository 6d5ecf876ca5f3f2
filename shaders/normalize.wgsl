// u8 images in HWC order become normalised tensors: x * scale + bias, as f32 or rounded to f16.
//
// A thread writes one vector of four words: scalar stores reach a fraction of a large GPU's memory bandwidth. All that
// is constant for a lane is an override, so there is nothing to upload; the number of workgroups is the number of samples.
// Threads past the last sample write padding or unused samples of the bound range, and never outside it. That is checked
// here, since not every driver does.

override channels: u32; // 1, 3 or 4
override plane: u32; // pixels of one channel
override half: bool; // f16 elements, two a word
override scale0: f32;
override scale1: f32;
override scale2: f32;
override scale3: f32;
override bias0: f32;
override bias1: f32;
override bias2: f32;
override bias3: f32;

// Elements of one image.
override image: u32 = channels * plane;

@group(0) @binding(0) var<storage, read> pixels: array<u32>;
@group(0) @binding(1) var<storage, read_write> tensor: array<vec4<u32>>;

const GROUP = 256u;

// A thread's index, where the workgroups of a large batch go on in a second dimension.
fn linear(group: vec3<u32>, groups: vec3<u32>, local: u32) -> u32 {
    return (group.y * groups.x + group.x) * GROUP + local;
}

fn bytes_of(word: u32) -> vec4<u32> {
    return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}

// f32 to f16 bits: to nearest, ties to even, with subnormals, overflowing to infinity. Written out because drivers may
// round pack2x16float either way and may flush subnormals.
fn half_bits(values: vec4<f32>) -> vec4<u32> {
    let bits = bitcast<vec4<u32>>(values);
    let magnitude = bits & vec4<u32>(0x7fffffffu);
    // Rounds at bit 13 and moves the exponent's bias from 127 to 15.
    let odd = (magnitude >> vec4<u32>(13u)) & vec4<u32>(1u);
    let normal = (magnitude + odd + vec4<u32>(0xfffu) - vec4<u32>(0x38000000u)) >> vec4<u32>(13u);
    // Next to 0.5 a unit in the last place is 2^-24, f16's smallest step: the addition rounds.
    let shifted = bitcast<vec4<f32>>(magnitude) + vec4<f32>(0.5);
    let subnormal = bitcast<vec4<u32>>(shifted) - vec4<u32>(0x3f000000u);
    let finite = min(normal, vec4<u32>(0x7c00u));
    let sign = (bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u);
    return sign | select(finite, subnormal, magnitude < vec4<u32>(0x38800000u));
}

fn pack_halves(first: vec4<f32>, second: vec4<f32>) -> vec4<u32> {
    let low = half_bits(first);
    let high = half_bits(second);
    return vec4<u32>(low.xz, high.xz) | (vec4<u32>(low.yw, high.yw) << vec4<u32>(16u));
}

// NHWC, and NCHW of one channel, where both are the same: elements stay in order.

// The four values of a word of source bytes.
fn interleaved_word(index: u32) -> vec4<f32> {
    var word = 0u;
    if index < arrayLength(&pixels) {
        word = pixels[index];
    }
    var scale = vec4<f32>(scale0);
    var bias = vec4<f32>(bias0);
    if channels == 4u {
        scale = vec4<f32>(scale0, scale1, scale2, scale3);
        bias = vec4<f32>(bias0, bias1, bias2, bias3);
    } else if channels == 3u {
        // Four bytes a word and three channels: each word starts one channel later.
        let scales = vec3<f32>(scale0, scale1, scale2);
        let biases = vec3<f32>(bias0, bias1, bias2);
        let start = index % 3u;
        scale = select(select(scales.zxyz, scales.yzxy, start == 1u), scales.xyzx, start == 0u);
        bias = select(select(biases.zxyz, biases.yzxy, start == 1u), biases.xyzx, start == 0u);
    }
    return vec4<f32>(bytes_of(word)) * scale + bias;
}

@compute @workgroup_size(GROUP)
fn interleaved(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = linear(group, groups, local);
    if index >= arrayLength(&tensor) {
        return;
    }
    if half {
        tensor[index] = pack_halves(interleaved_word(2u * index), interleaved_word(2u * index + 1u));
    } else {
        tensor[index] = bitcast<vec4<u32>>(interleaved_word(index));
    }
}

// NCHW of 3 or 4 channels, where a plane is a whole number of vectors: 4 pixels of f32 or 8 of f16 a thread, which are a
// whole number of source words and one vector of each plane.

struct Quad {
    c0: vec4<f32>,
    c1: vec4<f32>,
    c2: vec4<f32>,
    c3: vec4<f32>,
}

// The values of four pixels by channel, from the `channels` words at `first`.
fn quad(first: u32) -> Quad {
    let a = bytes_of(pixels[first]);
    let b = bytes_of(pixels[first + 1u]);
    let c = bytes_of(pixels[first + 2u]);
    var result: Quad;
    var d = vec4<u32>(0u);
    var c0 = vec4<u32>(a.xw, b.z, c.y);
    var c1 = vec4<u32>(a.y, b.xw, c.z);
    var c2 = vec4<u32>(a.z, b.y, c.xw);
    if channels == 4u {
        d = bytes_of(pixels[first + 3u]);
        c0 = vec4<u32>(a.x, b.x, c.x, d.x);
        c1 = vec4<u32>(a.y, b.y, c.y, d.y);
        c2 = vec4<u32>(a.z, b.z, c.z, d.z);
        result.c3 = vec4<f32>(vec4<u32>(a.w, b.w, c.w, d.w)) * scale3 + bias3;
    }
    result.c0 = vec4<f32>(c0) * scale0 + bias0;
    result.c1 = vec4<f32>(c1) * scale1 + bias1;
    result.c2 = vec4<f32>(c2) * scale2 + bias2;
    return result;
}

@compute @workgroup_size(GROUP)
fn planar(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = linear(group, groups, local);
    let words = select(channels, 2u * channels, half);
    let vectors = plane / select(4u, 8u, half);
    let first = index * words;
    let sample = index / vectors;
    // The thread's vector of the first plane; those of the other planes follow.
    let place = sample * channels * vectors + (index - sample * vectors);
    if first + words > arrayLength(&pixels) || place + (channels - 1u) * vectors >= arrayLength(&tensor) {
        return;
    }
    let low = quad(first);
    if half {
        let high = quad(first + channels);
        tensor[place] = pack_halves(low.c0, high.c0);
        tensor[place + vectors] = pack_halves(low.c1, high.c1);
        tensor[place + 2u * vectors] = pack_halves(low.c2, high.c2);
        if channels == 4u {
            tensor[place + 3u * vectors] = pack_halves(low.c3, high.c3);
        }
    } else {
        tensor[place] = bitcast<vec4<u32>>(low.c0);
        tensor[place + vectors] = bitcast<vec4<u32>>(low.c1);
        tensor[place + 2u * vectors] = bitcast<vec4<u32>>(low.c2);
        if channels == 4u {
            tensor[place + 3u * vectors] = bitcast<vec4<u32>>(low.c3);
        }
    }
}

// NCHW of any plane: a vector may span planes and samples, so each element finds its own byte.

fn planar_element(element: u32) -> f32 {
    let sample = element / image;
    let within = element - sample * image;
    let channel = within / plane;
    let pixel = within - channel * plane;
    let position = sample * image + pixel * channels + channel;
    var word = 0u;
    if (position >> 2u) < arrayLength(&pixels) {
        word = pixels[position >> 2u];
    }
    let value = f32((word >> ((position & 3u) * 8u)) & 255u);
    let scale = select(select(scale0, scale1, channel == 1u), select(scale2, scale3, channel == 3u), channel >= 2u);
    let bias = select(select(bias0, bias1, channel == 1u), select(bias2, bias3, channel == 3u), channel >= 2u);
    return value * scale + bias;
}

fn planar_elements(first: u32) -> vec4<f32> {
    return vec4<f32>(
        planar_element(first),
        planar_element(first + 1u),
        planar_element(first + 2u),
        planar_element(first + 3u),
    );
}

@compute @workgroup_size(GROUP)
fn planar_any(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = linear(group, groups, local);
    if index >= arrayLength(&tensor) {
        return;
    }
    if half {
        tensor[index] = pack_halves(planar_elements(8u * index), planar_elements(8u * index + 4u));
    } else {
        tensor[index] = bitcast<vec4<u32>>(planar_elements(4u * index));
    }
}
