// Frames become a network's input: each pixel of the tensor is a weighted sum of the frame's pixels, as its sample's record says, and
// then one linear map of its components, a scale and a sum. Follows half.wgsl.
//
// All that is constant for a lane is an override. A record holds what differs from sample to sample; `Geometry::words` says how it is
// laid out. Positions are counted in whole numbers, so that where a pixel lies between two others is as exact in a frame of 8K as in a
// small one.

override format: u32; // 0 one byte a pixel, 1 three, 2 four, 3 NV12, 4 I420
override pitch: u32;
override frame_width: u32;
override frame_height: u32;
override plane1: u32; // the first byte of the chroma planes
override plane2: u32;
override left_sited: bool; // chroma samples lie in the left column of their pixels
override sample_bytes: u32;
override taps: u32; // the filter: 0 nearest, 1 bilinear, 2 bicubic
override antialias: bool;
override keeps_values: bool; // a mask, whose first component is the only channel
override width: u32; // of the tensor
override height: u32;
override channels: u32; // 1 or 3
override planar: bool;
override dtype: u32; // 0 f32, 1 f16, 2 bf16, 3 bytes
override scale0: f32;
override scale1: f32;
override scale2: f32;
override bias0: f32;
override bias1: f32;
override bias2: f32;
override fill0: f32; // already scaled
override fill1: f32;
override fill2: f32;
override least: f32; // of a byte, before the zero point is added
override most: f32;
override zero_point: i32;

const GROUP = 256u;

// Elements of a word.
override each: u32 = select(select(4u, 2u, dtype < 3u), 1u, dtype == 0u);
override area: u32 = width * height;

struct Run {
    first: u32, // of the batch's samples
    count: u32,
}

@group(0) @binding(0) var<storage, read> pixels: array<u32>;
@group(0) @binding(1) var<storage, read> records: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> tensor: array<u32>;
@group(0) @binding(3) var<uniform> run: Run;

fn byte_at(address: u32) -> f32 {
    return f32((pixels[address >> 2u] >> ((address & 3u) * 8u)) & 255u);
}

// Three bytes from any address on.
fn three_at(address: u32) -> u32 {
    let word = address >> 2u;
    let shift = (address & 3u) * 8u;
    let high = pixels[min(word + 1u, arrayLength(&pixels) - 1u)];
    // Shifted twice, since a shift by all 32 bits would be one by none.
    return (pixels[word] >> shift) | ((high << 1u) << (31u - shift));
}

// Cb and Cr of a pair of samples.
fn chroma_at(first: u32, x: u32, y: u32) -> vec2<f32> {
    if format == 3u {
        let address = first + plane1 + y * pitch + 2u * x;
        let pair = pixels[address >> 2u] >> ((address & 2u) * 8u);
        return vec2<f32>(f32(pair & 255u), f32((pair >> 8u) & 255u));
    }
    let within = first + y * (pitch / 2u) + x;
    return vec2<f32>(byte_at(within + plane1), byte_at(within + plane2));
}

// Chroma between its samples, at a pixel's centre. The weight of the sample further on is in quarters.
fn chroma_of(first: u32, x: u32, y: u32) -> vec2<f32> {
    let last_x = (frame_width + 1u) / 2u - 1u;
    let last_y = (frame_height + 1u) / 2u - 1u;
    // Half a pixel up where samples are centred: rounded towards minus infinity by way of one more.
    var column = (x + 1u) / 2u;
    var across = 0.75 - 0.5 * f32(x & 1u);
    if left_sited {
        column = x / 2u + 1u;
        across = 0.5 * f32(x & 1u);
    }
    let row = (y + 1u) / 2u;
    let x0 = min(max(column, 1u) - 1u, last_x);
    let x1 = min(column, last_x);
    let y0 = min(max(row, 1u) - 1u, last_y);
    let y1 = min(row, last_y);
    let down = 0.75 - 0.5 * f32(y & 1u);
    let above = mix(chroma_at(first, x0, y0), chroma_at(first, x1, y0), across);
    let below = mix(chroma_at(first, x0, y1), chroma_at(first, x1, y1), across);
    return mix(above, below, down);
}

// The components of the pixel whose first byte this is, as they are stored, and one.
fn components_at(address: u32) -> vec4<f32> {
    if format == 0u {
        return vec4<f32>(byte_at(address), 0.0, 0.0, 1.0);
    }
    var bytes = 0u;
    if format == 2u && (sample_bytes & 3u) == 0u && (pitch & 3u) == 0u {
        bytes = pixels[address >> 2u];
    } else {
        bytes = three_at(address);
    }
    return vec4<f32>(f32(bytes & 255u), f32((bytes >> 8u) & 255u), f32((bytes >> 16u) & 255u), 1.0);
}

// As above, of a pixel with chroma: luma comes first.
fn components_of(first: u32, x: u32, y: u32) -> vec4<f32> {
    return vec4<f32>(byte_at(first + y * pitch + x), chroma_of(first, x, y), 1.0);
}

// The frame's pixels along one axis that one of the tensor's is made of: `first` to `last`, counted from the pixel in which its
// centre falls.
struct Window {
    base: i32,
    part: f32, // where in that pixel
    shrink: f32, // one over how much the filter is widened
    first: i32,
    last: i32,
}

// `at` of `resized` pixels that `length` stored ones become. `half_step` is 0.5 / resized.
fn window_of(at: i32, length: i32, resized: i32, half_step: f32) -> Window {
    let number = (2 * at + 1) * length;
    var result: Window;
    result.base = i32(f32(number) * half_step);
    var rest = number - result.base * 2 * resized;
    // The product was rounded.
    if rest < 0 {
        result.base -= 1;
        rest += 2 * resized;
    } else if rest >= 2 * resized {
        result.base += 1;
        rest -= 2 * resized;
    }
    result.part = f32(rest) * half_step;
    result.shrink = 1.0;
    if taps == 0u {
        return result;
    }
    var reach = 2.0;
    if taps == 1u {
        reach = 1.0;
    }
    if antialias && length > resized {
        let stretch = f32(2 * length) * half_step;
        reach *= stretch;
        result.shrink = 1.0 / stretch;
    }
    result.first = max(i32(floor(result.part - 0.5 - reach)) + 1, -result.base);
    result.last = min(i32(ceil(result.part - 0.5 + reach)) - 1, length - 1 - result.base);
    return result;
}

fn weight_of(window: Window, tap: i32) -> f32 {
    if taps == 0u {
        return 1.0;
    }
    let distance = abs(f32(tap) + 0.5 - window.part) * window.shrink;
    if taps == 1u {
        return max(1.0 - distance, 0.0);
    }
    let near = (1.5 * distance - 2.5) * distance * distance + 1.0;
    let far = ((-0.5 * distance + 2.5) * distance - 4.0) * distance + 2.0;
    return select(select(0.0, far, distance < 2.0), near, distance < 1.0);
}

// The weighted components of the pixels in two windows, whose first corner lies at a byte of its frame, and the sum of their weights.
// The steps lead to the next pixel of each window.
fn sum_of_bytes(across: Window, down: Window, corner: u32, step: vec2<u32>) -> vec4<f32> {
    var sum = vec4<f32>(0.0);
    for (var v = down.first; v <= down.last; v++) {
        let line = corner + u32(v) * step.y;
        var part = vec4<f32>(0.0);
        var u = across.first;
        // Four loads at once, which do not wait for each other.
        for (; u + 3 <= across.last; u += 4) {
            let address = line + u32(u) * step.x;
            let a = components_at(address);
            let b = components_at(address + step.x);
            let c = components_at(address + 2u * step.x);
            let d = components_at(address + 3u * step.x);
            part += a * weight_of(across, u) + b * weight_of(across, u + 1);
            part += c * weight_of(across, u + 2) + d * weight_of(across, u + 3);
        }
        for (; u <= across.last; u++) {
            part += components_at(line + u32(u) * step.x) * weight_of(across, u);
        }
        sum += part * weight_of(down, v);
    }
    return sum;
}

// As above, of frames with chroma.
fn sum_of_planes(across: Window, down: Window, first: u32, corner: vec2<i32>, transposed: bool) -> vec4<f32> {
    var sum = vec4<f32>(0.0);
    for (var v = down.first; v <= down.last; v++) {
        let weight = weight_of(down, v);
        for (var u = across.first; u <= across.last; u++) {
            let place = corner + vec2<i32>(u, v);
            let stored = vec2<u32>(select(place, place.yx, transposed));
            sum += components_of(first, stored.x, stored.y) * (weight * weight_of(across, u));
        }
    }
    return sum;
}

// The channels of a tensor's pixel, ready to be rounded. `sample` is counted from the first that is bound.
fn pixel_of(sample: u32, x: u32, y: u32) -> vec3<f32> {
    let record = (run.first + sample) * 6u;
    let source = vec4<i32>(records[record]);
    let placed = vec4<i32>(records[record + 1u]);
    let turned = records[record + 2u];
    let code = u32(turned.x);
    let resized = placed.xy;
    var at = vec2<i32>(i32(x), i32(y)) - placed.zw;
    if any(at < vec2<i32>(0)) || any(at >= resized) {
        return vec3<f32>(fill0, fill1, fill2);
    }
    at = select(at, resized - 1 - at, vec2<bool>((code & 1u) != 0u, (code & 2u) != 0u));
    let transposed = (code & 4u) != 0u;
    let lengths = select(source.zw, source.wz, transposed);
    var across = window_of(at.x, lengths.x, resized.x, turned.y);
    var down = window_of(at.y, lengths.y, resized.y, turned.z);
    let first = sample * sample_bytes;
    // A record that is right changes nothing here; no other one is to read outside of the frame.
    let frame_last = vec2<i32>(i32(frame_width) - 1, i32(frame_height) - 1);
    let end = select(frame_last, frame_last.yx, transposed);
    let corner = clamp(vec2<i32>(across.base, down.base) + select(source.xy, source.yx, transposed), vec2<i32>(0), end);
    across.first = max(across.first, -corner.x);
    across.last = min(across.last, end.x - corner.x);
    down.first = max(down.first, -corner.y);
    down.last = min(down.last, end.y - corner.y);
    var sum = vec4<f32>(0.0);
    if format < 3u {
        let step = vec2<u32>(select(4u, 2u * format + 1u, format < 2u), pitch);
        let stored = vec2<u32>(select(corner, corner.yx, transposed));
        sum = sum_of_bytes(across, down, first + dot(stored, step), select(step, step.yx, transposed));
    } else {
        sum = sum_of_planes(across, down, first, corner, transposed);
    }
    let mean = vec4<f32>(sum.xyz / sum.w, 1.0);
    var mixed = mean.xyz;
    if !keeps_values {
        mixed = vec3<f32>(
            dot(records[record + 3u], mean),
            dot(records[record + 4u], mean),
            dot(records[record + 5u], mean),
        );
    }
    let cut = clamp(mixed, vec3<f32>(0.0), vec3<f32>(255.0));
    return cut * vec3<f32>(scale0, scale1, scale2) + vec3<f32>(bias0, bias1, bias2);
}

// The elements of a word, as many as it has.
fn word_of(values: vec4<f32>) -> u32 {
    if dtype == 0u {
        return bitcast<u32>(values.x);
    }
    if dtype == 1u {
        let bits = half_bits(values);
        return bits.x | (bits.y << 16u);
    }
    if dtype == 2u {
        let bits = bitcast<vec4<u32>>(values);
        let rounded = (bits + ((bits >> vec4<u32>(16u)) & vec4<u32>(1u)) + vec4<u32>(0x7fffu)) >> vec4<u32>(16u);
        return rounded.x | (rounded.y << 16u);
    }
    let whole = vec4<i32>(round(clamp(values, vec4<f32>(least), vec4<f32>(most)))) + vec4<i32>(zero_point);
    let bytes = vec4<u32>(whole) & vec4<u32>(255u);
    return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}

// As many pixels a thread as a word has elements, and so a word of each plane, or as many words in a row: where a plane is whole words.
@compute @workgroup_size(GROUP)
fn pipeline(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = group.x * GROUP + local;
    let sample = group.z * groups.y + group.y;
    // What is bound may be fewer samples.
    let words = area / each;
    if index >= words || sample >= run.count || (sample + 1u) * channels * words > arrayLength(&tensor) {
        return;
    }
    var values: array<vec3<f32>, 4>;
    for (var at = 0u; at < each; at++) {
        let pixel = index * each + at;
        values[at] = pixel_of(sample, pixel % width, pixel / width);
    }
    let a = values[0];
    let b = values[1];
    let c = values[2];
    let d = values[3];
    let first = sample * channels * words;
    if channels == 1u {
        tensor[first + index] = word_of(vec4<f32>(a.x, b.x, c.x, d.x));
    } else if planar {
        tensor[first + index] = word_of(vec4<f32>(a.x, b.x, c.x, d.x));
        tensor[first + words + index] = word_of(vec4<f32>(a.y, b.y, c.y, d.y));
        tensor[first + 2u * words + index] = word_of(vec4<f32>(a.z, b.z, c.z, d.z));
    } else {
        let place = first + 3u * index;
        if each == 1u {
            tensor[place] = word_of(a.xxxx);
            tensor[place + 1u] = word_of(a.yyyy);
            tensor[place + 2u] = word_of(a.zzzz);
        } else if each == 2u {
            tensor[place] = word_of(vec4<f32>(a.xy, a.xy));
            tensor[place + 1u] = word_of(vec4<f32>(a.z, b.x, a.z, b.x));
            tensor[place + 2u] = word_of(vec4<f32>(b.yz, b.yz));
        } else {
            tensor[place] = word_of(vec4<f32>(a, b.x));
            tensor[place + 1u] = word_of(vec4<f32>(b.yz, c.xy));
            tensor[place + 2u] = word_of(vec4<f32>(c.z, d));
        }
    }
}

// A word of the tensor a thread, whatever its elements belong to: for planes that are no whole words.
@compute @workgroup_size(GROUP)
fn pipeline_any(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = (group.y * groups.x + group.x) * GROUP + local;
    let elements = run.count * channels * area;
    if index >= (elements + each - 1u) / each || index >= arrayLength(&tensor) {
        return;
    }
    var values = vec4<f32>(0.0);
    for (var at = 0u; at < each; at++) {
        let element = index * each + at;
        if element < elements {
            let sample = element / (channels * area);
            let within = element - sample * channels * area;
            let channel = select(within % channels, within / area, planar);
            let pixel = select(within / channels, within % area, planar);
            values[at] = pixel_of(sample, pixel % width, pixel / width)[channel];
        }
    }
    tensor[index] = word_of(values);
}
