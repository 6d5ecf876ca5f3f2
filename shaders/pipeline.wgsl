// Frames become a network's input: each pixel of the tensor is a weighted sum of the frame's pixels, as its sample's record says, and
// then one linear map of its components, a scale and a sum. Follows half.wgsl, pipeline_frame.wgsl and
// pipeline_span.wgsl, and is followed by pipeline_near.wgsl.
//
// All that is constant for a lane is an override. A record holds what differs from sample to sample; `Geometry::words` says how it is
// laid out. Positions are counted in whole numbers, so that where a pixel lies between two others is as exact in a frame of 8K as in a
// small one.
//
// A workgroup makes a tile of one sample's tensor. Which pixels of the frame its columns and rows are made of, and with what weights, is
// computed once for each of them. Where there are too few pixels for a device, several threads share each.

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
override tile_rows: u32; // MOST_ROWS at most
override threads: u32; // of each pixel: more than one only where all of a tile's rows are made at once

const GROUP = 256u;
const COLUMNS = 32u; // of a tile
const MOST_ROWS = 64u;
const MOST_TAPS = 32u; // of which weights are kept

// Elements of a word.
override each: u32 = select(select(4u, 2u, dtype < 3u), 1u, dtype == 0u);
override area: u32 = width * height;
// Threads in a row of a tile, a word of each plane each, and rows that are made at once.
override abreast: u32 = COLUMNS / each;
override lines: u32 = GROUP / (abreast * threads);
override tiles_across: u32 = (width + COLUMNS - 1u) / COLUMNS;

struct Run {
    first: u32, // of the batch's samples
    count: u32,
}

@group(0) @binding(0) var<storage, read> pixels: array<u32>;
@group(0) @binding(1) var<storage, read> records: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> tensor: array<u32>;
@group(0) @binding(3) var<uniform> run: Run;

// Of the rows of a pixel's window every `stride`-th, from `part` on, weighted: all such parts add up to the mean.
fn mean_of(frame: Frame, across: Span, down: Span, is_kept: bool, places: vec2<u32>, part: u32, stride: u32) -> vec3<f32> {
    var mean = vec3<f32>(0.0);
    for (var v = part; v < down.count; v += stride) {
        let y = down.begin + v;
        var line = vec3<f32>(0.0);
        var u = 0u;
        if format < 3u {
            // Four loads at once, which do not wait for each other.
            for (; u + 4u <= across.count; u += 4u) {
                let x = across.begin + u;
                let a = stored_at(frame, x, y);
                let b = stored_at(frame, x + 1u, y);
                let c = stored_at(frame, x + 2u, y);
                let d = stored_at(frame, x + 3u, y);
                line += a * weight_at(across, is_kept, places.x, u) + b * weight_at(across, is_kept, places.x, u + 1u);
                line += c * weight_at(across, is_kept, places.x, u + 2u) + d * weight_at(across, is_kept, places.x, u + 3u);
            }
        }
        for (; u < across.count; u++) {
            line += stored_at(frame, across.begin + u, y) * weight_at(across, is_kept, places.x, u);
        }
        mean += line * weight_at(down, is_kept, places.y, v);
    }
    return mean;
}

// The mean of at most two by two pixels, whose loads do not wait for each other.
fn mean_of_few(frame: Frame, across: Span, down: Span, places: vec2<u32>) -> vec3<f32> {
    let x = vec2<u32>(across.begin, across.begin + select(0u, 1u, across.count > 1u));
    let y = vec2<u32>(down.begin, down.begin + select(0u, 1u, down.count > 1u));
    let a = stored_at(frame, x.x, y.x);
    if taps == 0u {
        return a;
    }
    let b = stored_at(frame, x.y, y.x);
    let c = stored_at(frame, x.x, y.y);
    let d = stored_at(frame, x.y, y.y);
    let left = kept_weight(0u, places.x);
    let right = kept_weight(1u, places.x);
    return (a * left + b * right) * kept_weight(0u, places.y) + (c * left + d * right) * kept_weight(1u, places.y);
}

// Of the tile's sample: the most pixels that a column or a row has, and whether no channel is mixed of several components.
var<workgroup> most_pixels: u32;
var<workgroup> is_plain: u32;

// The most pixels that a column or a row of a sample has. Rounding may add one where the filter is widened.
fn most_taps(sample: u32) -> u32 {
    if taps == 0u {
        return 1u;
    }
    let reach = select(4.0, 2.0, taps == 1u);
    let record = (run.first + sample) * 6u;
    let turned = records[record + 2u];
    let lengths = select(records[record].zw, records[record].wz, (u32(turned.x) & 4u) != 0u);
    let resized = records[record + 1u].xy;
    if !antialias || all(lengths <= resized) {
        return u32(reach);
    }
    let stretch = max(lengths * 2.0 * turned.yz, vec2<f32>(1.0));
    return u32(ceil(reach * max(stretch.x, stretch.y))) + 1u;
}

struct Color {
    red: vec4<f32>,
    green: vec4<f32>,
    blue: vec4<f32>,
}

fn color_of(sample: u32) -> Color {
    let record = (run.first + sample) * 6u;
    return Color(records[record + 3u], records[record + 4u], records[record + 5u]);
}

// The channels of a pixel, mixed of its components, as far as a byte holds them.
fn mixed_of(mean: vec3<f32>, color: Color) -> vec3<f32> {
    let stored = vec4<f32>(mean, 1.0);
    var mixed = mean;
    if !keeps_values {
        mixed = vec3<f32>(dot(color.red, stored), dot(color.green, stored), dot(color.blue, stored));
    }
    return clamp(mixed, vec3<f32>(0.0), vec3<f32>(255.0));
}

// The channels of a pixel, ready to be rounded.
fn channels_of(mixed: vec3<f32>, inside: bool) -> vec3<f32> {
    let scaled = mixed * vec3<f32>(scale0, scale1, scale2) + vec3<f32>(bias0, bias1, bias2);
    return select(vec3<f32>(fill0, fill1, fill2), scaled, inside);
}

// Those of one pixel by itself. `sample` is counted from the first that is bound.
fn pixel_of(sample: u32, x: u32, y: u32) -> vec3<f32> {
    let across = span_of(sample, 0u, x);
    let down = span_of(sample, 1u, y);
    let mean = mean_of(frame_of(sample), across, down, false, vec2<u32>(0u), 0u, 1u);
    return channels_of(mixed_of(mean, color_of(sample)), across.count > 0u && down.count > 0u);
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

// Of a tile's columns or rows the first and the last one that are not filled; the last one comes first where there are none.
fn edges_of(sample: u32, axis: u32, tile: vec2<u32>) -> vec2<i32> {
    let placed = vec4<i32>(records[(run.first + sample) * 6u + 1u]);
    let start = vec2<i32>(tile)[axis];
    let end = min(start + vec2<i32>(i32(COLUMNS), i32(tile_rows))[axis], vec2<i32>(i32(width), i32(height))[axis]);
    return vec2<i32>(max(start, placed.zw[axis]), min(end, placed.zw[axis] + placed.xy[axis]) - 1);
}

// What is known of a tile whose first pixel this is: some threads find its columns and rows, others where they end, and what is so of its
// sample.
fn measure(sample: u32, tile: vec2<u32>, local: u32) {
    if local < places {
        let axis = select(0u, 1u, local >= COLUMNS);
        let span = span_of(sample, axis, select(tile.x + local, tile.y + local - COLUMNS, axis == 1u));
        spans[local] = span;
        for (var tap = 0u; tap < min(span.count, MOST_TAPS); tap++) {
            kept[tap * places + local] = bitcast<u32>(weight_at(span, false, 0u, tap));
        }
        if span.count < 2u {
            kept[places + local] = bitcast<u32>(0.0);
        }
        near_weights[local] = near_weights_of(span, axis, local);
    } else if local >= EDGES && local < EDGES + 4u {
        let axis = (local - EDGES) / 2u;
        let edges = edges_of(sample, axis, tile);
        spans[local] = Span(0u, 0u, 0.0, 1.0, 1.0);
        if edges.x <= edges.y {
            spans[local] = span_of(sample, axis, u32(edges[local % 2u]));
        }
    } else if local == EDGES + 32u {
        most_pixels = most_taps(sample);
    } else if local == EDGES + 64u {
        let color = color_of(sample);
        let plain = color.red == vec4<f32>(1.0, 0.0, 0.0, 0.0) & color.green == vec4<f32>(0.0, 1.0, 0.0, 0.0);
        is_plain = u32(all(plain & color.blue == vec4<f32>(0.0, 0.0, 1.0, 0.0)));
    }
}

// Writes the elements of as many pixels as a word has: a word of each plane, or as many words in a row as there are channels.
fn write(sample: u32, index: u32, a: vec3<f32>, b: vec3<f32>, c: vec3<f32>, d: vec3<f32>) {
    let words = area / each;
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

// A tile a workgroup, where a row is whole words.
@compute @workgroup_size(GROUP)
fn pipeline(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let sample = group.z * groups.y + group.y;
    let tile = vec2<u32>(group.x % tiles_across, group.x / tiles_across) * vec2<u32>(COLUMNS, tile_rows);
    // What is bound may be fewer samples.
    let bound = sample < run.count && (sample + 1u) * channels * (area / each) <= arrayLength(&tensor);
    if bound {
        measure(sample, tile, local);
    }
    let frame = frame_of(sample);
    let color = color_of(sample);
    let column = (local % abreast) * each;
    let line = local / abreast;
    let part = line % threads;
    workgroupBarrier();
    let near = part_of(sample);
    let is_near = bound && can_be_near(sample) && near.size.y * near.stride / 4u + BEYOND <= ROOM;
    if is_near {
        read_part(near, local);
    }
    workgroupBarrier();
    if is_near {
        make_near(sample, tile, near, color, local);
        return;
    }
    for (var first = 0u; first < tile_rows; first += lines) {
        let row = first + line / threads;
        let x = tile.x + column;
        let y = tile.y + row;
        let wanted = bound && x < width && y < height;
        var values: array<vec3<f32>, 4>;
        for (var at = 0u; at < each; at++) {
            let places = vec2<u32>(column + at, COLUMNS + row);
            var mean = vec3<f32>(0.0);
            var inside = false;
            if wanted {
                let across = spans[places.x];
                let down = spans[places.y];
                inside = across.count > 0u && down.count > 0u;
                if !inside {
                    // Nothing is read.
                } else if most_pixels <= 2u {
                    if part == 0u {
                        mean = mean_of_few(frame, across, down, places);
                    }
                } else if most_pixels <= MOST_TAPS {
                    mean = mean_of(frame, across, down, true, places, part, threads);
                } else {
                    mean = mean_of(frame, across, down, false, places, part, threads);
                }
            }
            if threads > 1u {
                for (var component = 0u; component < 3u; component++) {
                    kept[parts + component * GROUP + local] = bitcast<u32>(mean[component]);
                }
                workgroupBarrier();
                for (var other = 1u; part == 0u && other < threads; other++) {
                    let from_other = parts + local + other * abreast;
                    mean += bitcast<vec3<f32>>(vec3<u32>(kept[from_other], kept[from_other + GROUP], kept[from_other + 2u * GROUP]));
                }
                workgroupBarrier();
            }
            values[at] = channels_of(mixed_of(mean, color), inside);
        }
        if wanted && part == 0u {
            write(sample, (y * width + x) / each, values[0], values[1], values[2], values[3]);
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
