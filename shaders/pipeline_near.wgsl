// Tiles of pipeline.wgsl whose windows are near: of few pixels each way, in a frame that is not turned and has no planes. A tile's part of
// the frame is read into workgroup memory once, in whole words. A thread makes several rows one after the other, and keeps the lines of
// the frame that it has resampled: the next row needs few others.

const NEAR_TAPS = 4u;
const ROOM = 3072u; // words of a part
const BEYOND = 5u; // words that a pixel at their end may read, and does not use

override pixel_bytes: u32 = select(4u, 2u * format + 1u, format < 2u);

// A column's weights from the first one on and zeros behind them, and a row's the other way round.
var<workgroup> near_weights: array<vec4<f32>, 96>;

// The pixels of the frame that a tile is made of, its lines `stride` bytes behind each other, each where it lies in its words.
struct Part {
    corner: vec2<u32>, // x and y
    size: vec2<u32>, // columns and lines
    first: u32, // byte of the frames
    words: u32, // of a line
    stride: u32,
}

// Of a span whose weights are kept; of one that is not near no such weights.
fn near_weights_of(span: Span, axis: u32, place: u32) -> vec4<f32> {
    let before = select(0u, NEAR_TAPS - min(span.count, NEAR_TAPS), axis == 1u);
    var all = vec4<f32>(0.0);
    for (var tap = 0u; tap < NEAR_TAPS; tap++) {
        if tap >= before && tap - before < span.count {
            all[tap] = kept_weight(tap - before, place);
        }
    }
    return all;
}

// The pixels between two edges of a tile, which follow each other in one direction or the other: the first, and how many.
fn range_of(axis: u32) -> vec2<u32> {
    let a = spans[EDGES + 2u * axis];
    let b = spans[EDGES + 2u * axis + 1u];
    let begin = min(a.begin, b.begin);
    return vec2<u32>(begin, max(a.begin + a.count, b.begin + b.count) - begin);
}

fn part_of(sample: u32) -> Part {
    let across = range_of(0u);
    let down = range_of(1u);
    var part: Part;
    part.corner = vec2<u32>(across.x, down.x);
    part.size = vec2<u32>(across.y, down.y);
    part.first = sample * sample_bytes + down.x * pitch + across.x * pixel_bytes;
    // Of up to three bytes before the first one, and of what a last word has behind the last.
    part.words = (across.y * pixel_bytes + 6u) / 4u;
    // As long as the frame's but for whole words, so that lines lie in their words as they do there.
    part.stride = part.words * 4u + (pitch & 3u);
    return part;
}

// Whether a sample's tiles are near, where they have room.
fn can_be_near(sample: u32) -> bool {
    let turned = (u32(records[(run.first + sample) * 6u + 2u].x) & 4u) != 0u;
    return format < 3u && taps > 0u && threads == 1u && most_pixels <= NEAR_TAPS && !turned;
}

// Reads a tile's part of the frame, a line every 32 threads.
fn read_part(part: Part, local: u32) {
    let lead = part.first & 3u;
    for (var word = local % 32u; word < part.words; word += 32u) {
        for (var line = local / 32u; line < part.size.y; line += GROUP / 32u) {
            kept[(lead + line * part.stride) / 4u + word] = pixels[(part.first + line * pitch) / 4u + word];
        }
    }
}

fn bytes_of(word: u32) -> vec4<f32> {
    return vec4<f32>(vec4<u32>(word, word >> 8u, word >> 16u, word >> 24u) & vec4<u32>(255u));
}

// Four bytes out of two words that follow each other, from a byte of the first one on.
fn joined(low: u32, high: u32, shift: u32) -> u32 {
    // Shifted twice, since a shift by all 32 bits would be one by none.
    return (low >> shift) | ((high << 1u) << (31u - shift));
}

// The mean of neighbours in a line, the first of which begins at this byte of what a tile has read; of `few`, two of them.
fn line_at(byte: u32, few: bool, weights: vec4<f32>) -> vec3<f32> {
    let at = byte / 4u;
    let shift = (byte & 3u) * 8u;
    let second = kept[at + 1u];
    let a = bytes_of(joined(kept[at], second, shift));
    if format == 0u {
        return vec3<f32>(dot(a, weights), 0.0, 0.0);
    }
    let third = kept[at + 2u];
    let b = bytes_of(joined(second, third, shift));
    if format == 1u {
        let mean = a.xyz * weights.x + vec3<f32>(a.w, b.xy) * weights.y;
        if few {
            return mean;
        }
        let c = bytes_of(joined(third, kept[at + 3u], shift));
        return mean + vec3<f32>(b.zw, c.x) * weights.z + c.yzw * weights.w;
    }
    let mean = a.xyz * weights.x + b.xyz * weights.y;
    if few {
        return mean;
    }
    let fourth = kept[at + 3u];
    let c = bytes_of(joined(third, fourth, shift));
    let d = bytes_of(joined(fourth, kept[at + 4u], shift));
    return mean + c.xyz * weights.z + d.xyz * weights.w;
}

// Makes a tile: as many rows a thread, one after the other, as the tile has for each.
fn make_near(sample: u32, tile: vec2<u32>, part: Part, color: Color, local: u32) {
    let column = (local % abreast) * each;
    let rows = tile_rows / lines;
    let first_row = local / abreast * rows;
    let backwards = (u32(records[(run.first + sample) * 6u + 2u].x) & 2u) != 0u;
    let lead = part.first & 3u;
    let few = most_pixels <= 2u;
    // Between bytes lie bytes, unless weights may be negative.
    let is_cut = taps == 1u && is_plain != 0u;
    // What was resampled last, and the line behind it.
    var a = vec3<f32>(0.0);
    var b = a;
    var c = a;
    var d = a;
    var next = 0u;
    for (var number = 0u; number < rows; number++) {
        // Down the frame, whichever way that is in the tensor.
        let row = first_row + select(number, rows - 1u - number, backwards);
        let x = tile.x + column;
        let y = tile.y + row;
        if x >= width || y >= height {
            continue;
        }
        let first = spans[COLUMNS + row].begin - part.corner.y;
        let end = min(first + spans[COLUMNS + row].count, part.size.y);
        let down = near_weights[COLUMNS + row];
        var values: array<vec3<f32>, 4>;
        for (var at = 0u; at < each; at++) {
            // The lines of another column are others.
            next = max(select(0u, next, each == 1u), first);
            let begin = spans[column + at].begin - part.corner.x;
            let count = spans[column + at].count;
            // So of every record that is right: no other one is to read anything else.
            let byte = lead + select(0u, begin * pixel_bytes, begin + count <= part.size.x);
            let across = near_weights[column + at];
            for (; next < end; next++) {
                a = b;
                b = c;
                c = d;
                d = line_at(next * part.stride + byte, few, across);
            }
            var mean = c * down.z + d * down.w;
            if !few {
                mean += a * down.x + b * down.y;
            }
            if !is_cut {
                mean = mixed_of(mean, color);
            }
            values[at] = channels_of(mean, end > first && count > 0u);
        }
        write(sample, (y * width + x) / each, values[0], values[1], values[2], values[3]);
    }
}
