// Which pixels of the frame pipeline.wgsl makes a column or a row of the tensor of, and with what weights.

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

// At a distance from the filter's centre, in units of its own width.
fn weight_of(from_center: f32) -> f32 {
    if taps == 0u {
        return 1.0;
    }
    let distance = abs(from_center);
    if taps == 1u {
        return max(1.0 - distance, 0.0);
    }
    let near = (1.5 * distance - 2.5) * distance * distance + 1.0;
    let far = ((-0.5 * distance + 2.5) * distance - 4.0) * distance + 2.0;
    return select(select(0.0, far, distance < 2.0), near, distance < 1.0);
}

// The pixels of one of the frame's axes that a column or a row of the tensor is made of.
struct Span {
    begin: u32,
    count: u32, // none where it is filled
    first: f32, // the first one's distance from the filter's centre
    shrink: f32,
    scale: f32, // one over the sum of the weights
}

// Of the tensor's x, axis 0, or y.
fn span_of(sample: u32, axis: u32, position: u32) -> Span {
    let record = (run.first + sample) * 6u;
    let source = vec4<i32>(records[record]);
    let placed = vec4<i32>(records[record + 1u]);
    let turned = records[record + 2u];
    let code = u32(turned.x);
    let resized = select(placed.x, placed.y, axis == 1u);
    let half_step = select(turned.y, turned.z, axis == 1u);
    var at = i32(position) - select(placed.z, placed.w, axis == 1u);
    var result = Span(0u, 0u, 0.0, 1.0, 1.0);
    if at < 0 || at >= resized {
        return result;
    }
    if ((code >> axis) & 1u) != 0u {
        at = resized - 1 - at;
    }
    let upright = (axis == 1u) != ((code & 4u) != 0u);
    let window = window_of(at, select(source.z, source.w, upright), resized, half_step);
    // A record that is right changes nothing here; no other one is to read outside of the frame.
    let last = i32(select(frame_width, frame_height, upright)) - 1;
    let corner = clamp(window.base + select(source.x, source.y, upright), 0, last);
    let first = max(window.first, -corner);
    result.begin = u32(corner + first);
    let end = min(window.last, last - corner);
    result.count = select(0u, u32(end - first + 1), end >= first);
    result.first = (f32(first) + 0.5 - window.part) * window.shrink;
    result.shrink = window.shrink;
    var sum = 0.0;
    for (var tap = 0u; tap < result.count; tap++) {
        sum += weight_of(result.first + f32(tap) * result.shrink);
    }
    result.scale = 1.0 / sum;
    return result;
}

// Of a tile's columns, and then of its rows; behind them those of the first column that is not filled and of the last one, and of such rows.
var<workgroup> spans: array<Span, 100>;
const EDGES = COLUMNS + MOST_ROWS;
override places: u32 = COLUMNS + tile_rows;
// Weights, divided by their sum, and at least two of each span, the second of which may be zero; behind them parts of pixels that threads
// share. pipeline_near.wgsl keeps part of the frame there instead.
var<workgroup> kept: array<u32, 3072>;
override parts: u32 = MOST_TAPS * places;

fn kept_weight(tap: u32, place: u32) -> f32 {
    return bitcast<f32>(kept[tap * places + place]);
}

// Of a pixel of a span, which is kept as that of number `place`, or else is computed.
fn weight_at(span: Span, is_kept: bool, place: u32, tap: u32) -> f32 {
    if is_kept {
        return kept_weight(tap, place);
    }
    return weight_of(span.first + f32(tap) * span.shrink) * span.scale;
}
