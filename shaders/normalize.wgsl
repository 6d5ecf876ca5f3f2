// u8 images in HWC order become normalised tensors: x * scale + bias, as f32 or rounded to f16. What all such kernels share.
// Follows half.wgsl.
//
// All that is constant for a lane is an override, so there is nothing to upload.

override channels: u32; // 1, 3 or 4
override plane: u32; // pixels of one channel
override half: bool; // f16 elements, two a word
override tame: bool; // every value that there can be is zero or a normal f16
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

const GROUP = 256u;

// A thread's index, where the workgroups of a large batch go on in a second dimension.
fn linear(group: vec3<u32>, groups: vec3<u32>, local: u32) -> u32 {
    return (group.y * groups.x + group.x) * GROUP + local;
}

fn bytes_of(word: u32) -> vec4<u32> {
    return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}

// Values that are zero or normal f16, rounded likewise and still f32: what is left of them fits f16, and every way to pack it gives
// the same.
fn rounded(values: vec4<f32>) -> vec4<f32> {
    let bits = bitcast<vec4<u32>>(values);
    let odd = (bits >> vec4<u32>(13u)) & vec4<u32>(1u);
    return bitcast<vec4<f32>>((bits + odd + vec4<u32>(0xfffu)) & vec4<u32>(0xffffe000u));
}

// Four values in two words.
fn pack_half(values: vec4<f32>) -> vec2<u32> {
    if tame {
        return pack_fitting(rounded(values));
    }
    let bits = half_bits(values);
    return bits.xz | (bits.yw << vec2<u32>(16u));
}

fn pack_halves(first: vec4<f32>, second: vec4<f32>) -> vec4<u32> {
    return vec4<u32>(pack_half(first), pack_half(second));
}

// NHWC, and NCHW of one channel, where both are the same: elements stay in order.

// The four values of a word of source bytes, `index` words after the start of an image.
fn interleaved_values(word: u32, index: u32) -> vec4<f32> {
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

// NCHW of 3 or 4 channels: the values of four pixels by channel, from as many words as there are channels.

struct Quad {
    c0: vec4<f32>,
    c1: vec4<f32>,
    c2: vec4<f32>,
    c3: vec4<f32>,
}

fn quad_of(first: u32, second: u32, third: u32, fourth: u32) -> Quad {
    let a = bytes_of(first);
    let b = bytes_of(second);
    let c = bytes_of(third);
    var result: Quad;
    var c0 = vec4<u32>(a.xw, b.z, c.y);
    var c1 = vec4<u32>(a.y, b.xw, c.z);
    var c2 = vec4<u32>(a.z, b.y, c.xw);
    if channels == 4u {
        let d = bytes_of(fourth);
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

// The value of one byte of a channel.
fn value_of(byte: u32, channel: u32) -> f32 {
    let scale = select(select(scale0, scale1, channel == 1u), select(scale2, scale3, channel == 3u), channel >= 2u);
    let bias = select(select(bias0, bias1, channel == 1u), select(bias2, bias3, channel == 3u), channel >= 2u);
    return f32(byte) * scale + bias;
}
