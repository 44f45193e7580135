// Pictures from coordinates: the learner's network, computed in the browser.

/** The network of an explorer of pictures, as `NetworkData` describes it. Pixels are padded to a multiple of 4. */
class Network {
  /** @param {NetworkData} network */
  constructor({ width, side, numbers }, components) {
    const all = new Float32Array(bytesOf(numbers).buffer);
    let from = 0;
    const take = (n) => all.subarray(from, (from += n));
    this.width = width;
    this.side = side;
    this.pixels = side[0] * side[1];
    this.padded = 4 * Math.ceil(this.pixels / 4);
    const inputs = take(2 * this.pixels);
    const [encoder, bias] = [take(2 * width), take(width)];
    this.weights = range(components).map(() => take(width * width));
    this.biases = range(components).map(() => take(width));
    this.decoder = take(width);
    this.offset = take(1);
    this.encoded = new Float32Array(this.padded * width);
    for (let p = 0; p < this.pixels; p++)
      for (let o = 0; o < width; o++)
        this.encoded[p * width + o] = inputs[2 * p] * encoder[o] + inputs[2 * p + 1] * encoder[width + o] + bias[o];
  }

  /** relu(W_c h + b_c) of all pixels. Four at a time, so that a weight is fetched once for four. */
  component(c, h) {
    const { width: n, padded } = this;
    const [weight, bias, out] = [this.weights[c], this.biases[c], new Float32Array(padded * n)];
    for (let p = 0; p < padded * n; p += 4 * n)
      for (let o = 0; o < n; o++) {
        let s0 = bias[o], s1 = s0, s2 = s0, s3 = s0;
        for (let i = 0, w = o * n, q = p; i < n; i++, w++, q++) {
          const v = weight[w];
          s0 += v * h[q];
          s1 += v * h[q + n];
          s2 += v * h[q + 2 * n];
          s3 += v * h[q + 3 * n];
        }
        const q = p + o;
        out[q] = s0 > 0 ? s0 : 0;
        out[q + n] = s1 > 0 ? s1 : 0;
        out[q + 2 * n] = s2 > 0 ? s2 : 0;
        out[q + 3 * n] = s3 > 0 ? s3 : 0;
      }
    return out;
  }

  ink(h) {
    const ink = new Float32Array(this.pixels);
    for (let p = 0; p < this.pixels; p++) {
      let sum = this.offset[0];
      for (let o = 0; o < this.width; o++) sum += h[p * this.width + o] * this.decoder[o];
      ink[p] = 1 / (1 + Math.exp(-sum));
    }
    return ink;
  }
}

/** Draws with changing weights. What lies before the first changed depth is kept from the last time. */
class Painter {
  constructor(network) {
    this.network = network;
    this.layers = []; // {h: before the depth, outputs: of its components, weights, after}
  }

  ink(weights) {
    let h = this.network.encoded;
    weights.forEach((mix, d) => {
      if (this.layers[d]?.h !== h) this.layers[d] = { h, outputs: [] };
      const layer = this.layers[d];
      if (!layer.weights?.every((weight, c) => weight === mix[c])) {
        layer.weights = mix.slice();
        layer.after = this.combined(layer, mix);
      }
      h = layer.after;
    });
    return this.network.ink(h);
  }

  combined({ h, outputs }, mix) {
    const sum = new Float32Array(h.length);
    mix.forEach((weight, c) => {
      if (!weight) return;
      const out = (outputs[c] ??= this.network.component(c, h));
      for (let i = 0; i < sum.length; i++) sum[i] += weight * out[i];
    });
    return sum;
  }
}

/** Dark ink on white paper, also on a dark page. */
function paint(canvas, ink, [rows, columns]) {
  [canvas.width, canvas.height] = [columns, rows];
  const image = new ImageData(columns, rows);
  ink.forEach((value, i) => image.data.set([0, 1, 2].map(() => 255 * (1 - value)), 4 * i));
  for (let i = 3; i < image.data.length; i += 4) image.data[i] = 255;
  canvas.getContext("2d").putImageData(image, 0, 0);
}
