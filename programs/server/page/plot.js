// Points on a WebGL2 canvas: drawing, moving, zooming, and finding the point under the pointer. Knows nothing of rows.

const POINT_SHADER = `#version 300 es
precision highp float;
layout(location = 0) in vec2 place;
layout(location = 1) in uint colour;
layout(location = 2) in uint mark;
uniform vec2 centre, scale;
uniform float size;
uniform bool marked;
uniform sampler2D palette;
out vec4 tint;
void main() {
  vec4 c = texelFetch(palette, ivec2(int(colour), 0), 0);
  bool on = mark == 1u;
  if (c.a == 0.0) { gl_Position = vec4(2.0, 2.0, 2.0, 1.0); gl_PointSize = 0.0; tint = vec4(0.0); return; }
  tint = marked && !on ? vec4(c.rgb, c.a * 0.16) : c;
  gl_Position = vec4((place - centre) * scale, 0.0, 1.0);
  gl_PointSize = on ? size + 2.0 : size;
}`;
const POINT_PIXELS = `#version 300 es
precision mediump float;
in vec4 tint;
out vec4 pixel;
void main() {
  vec2 at = gl_PointCoord * 2.0 - 1.0;
  float edge = dot(at, at);
  if (edge > 1.0) discard;
  pixel = vec4(tint.rgb * tint.a, tint.a) * (1.0 - smoothstep(0.6, 1.0, edge));
}`;
const LINE_SHADER = `#version 300 es
layout(location = 0) in vec2 place;
uniform vec2 centre, scale;
void main() { gl_Position = vec4((place - centre) * scale, 0.0, 1.0); }`;
const LINE_PIXELS = `#version 300 es
precision mediump float;
uniform vec4 ink;
out vec4 pixel;
void main() { pixel = vec4(ink.rgb * ink.a, ink.a); }`;

function program(gl, vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) throw new Error(`the graphics driver refuses a shader: ${gl.getProgramInfoLog(made)}`);
  const at = (name) => gl.getUniformLocation(made, name);
  return { made, at };
}

// Cells of equal size over all points, each with the numbers of its points.
class Grid {
  constructor(points, bounds) {
    const n = points.length / 2;
    this.side = Math.max(1, Math.min(1024, Math.ceil(Math.sqrt(n / 3))));
    this.bounds = bounds;
    this.points = points;
    const cells = new Uint32Array(this.side * this.side + 1);
    const cellOf = new Uint32Array(n);
    for (let i = 0; i < n; i++) cells[(cellOf[i] = this.cell(points[2 * i], points[2 * i + 1])) + 1]++;
    for (let c = 1; c < cells.length; c++) cells[c] += cells[c - 1];
    const next = cells.slice();
    this.order = new Uint32Array(n);
    for (let i = 0; i < n; i++) this.order[next[cellOf[i]]++] = i;
    this.cells = cells;
  }

  column(x) { return Math.max(0, Math.min(this.side - 1, Math.floor(((x - this.bounds.x) / this.bounds.width) * this.side))); }

  line(y) { return Math.max(0, Math.min(this.side - 1, Math.floor(((y - this.bounds.y) / this.bounds.height) * this.side))); }

  cell(x, y) { return this.line(y) * this.side + this.column(x); }

  // Calls tell(i) for the points of all cells that a rectangle touches.
  within(x0, y0, x1, y1, tell) {
    for (let line = this.line(y0); line <= this.line(y1); line++)
      for (let column = this.column(x0); column <= this.column(x1); column++) {
        const cell = line * this.side + column;
        for (let k = this.cells[cell]; k < this.cells[cell + 1]; k++) tell(this.order[k]);
      }
  }

  nearest(x, y, radius, admitted) {
    let found = -1, best = radius * radius;
    this.within(x - radius, y - radius, x + radius, y + radius, (i) => {
      const dx = this.points[2 * i] - x, dy = this.points[2 * i + 1] - y, d = dx * dx + dy * dy;
      if (d <= best && admitted(i)) { best = d; found = i; }
    });
    return found;
  }
}

function boundsOf(points) {
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < points.length; i += 2) {
    x0 = Math.min(x0, points[i]); x1 = Math.max(x1, points[i]);
    y0 = Math.min(y0, points[i + 1]); y1 = Math.max(y1, points[i + 1]);
  }
  if (!(x1 > x0)) { x0 -= 1; x1 += 1; }
  if (!(y1 > y0)) { y0 -= 1; y1 += 1; }
  return { x: x0, y: y0, width: x1 - x0, height: y1 - y0 };
}

// A shuffled order, always the same for the same number of points, so that no group of rows covers the others.
function shuffled(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1, seed = 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const k = Math.floor((seed / 4294967296) * (i + 1));
    [order[i], order[k]] = [order[k], order[i]];
  }
  return order;
}

// All points are drawn into a texture that is larger than the canvas. Frames copy it, shifted and scaled, so that most frames cost the same for any
// number of points. It is drawn again when the view leaves it, when a zoom magnifies it too much, and when a zoom ends.
const SCENE_SIZE = 1.5, MAGNIFIED_MAX = 2, REST_MS = 140;

export class Plot {
  // Returns null without WebGL2.
  static on(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true });
    return gl ? new Plot(canvas, gl) : null;
  }

  constructor(canvas, gl) {
    Object.assign(this, { canvas, gl, frames: 0, lines: new Float32Array(0), loop: null, marks: null });
    this.setup();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => { this.setup(); this.upload(); });
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(canvas);
  }

  setup() {
    const { gl } = this;
    this.fence = null;
    this.dots = program(gl, POINT_SHADER, POINT_PIXELS);
    this.strokes = program(gl, LINE_SHADER, LINE_PIXELS);
    this.buffers = { points: gl.createBuffer(), colours: gl.createBuffer(), marks: gl.createBuffer(), lines: gl.createBuffer(), order: gl.createBuffer() };
    this.texture = gl.createTexture();
    this.scene = { texture: gl.createTexture(), framebuffer: gl.createFramebuffer(), zoom: 0 };
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  close() {
    this.watch.disconnect();
    clearTimeout(this.rest);
    this.closed = true;
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  setPoints(points) {
    this.points = points;
    this.count = points.length / 2;
    this.colours = new Uint8Array(this.count);
    this.marks = null;
    this.order = shuffled(this.count);
    this.bounds = boundsOf(points);
    this.grid = new Grid(points, this.bounds);
    this.upload();
    this.fit();
  }

  setColours(colours, palette) {
    this.colours = colours;
    this.palette = palette;
    this.upload();
  }

  // Marks some points; the others fade. null: none is marked.
  setMarks(numbers) {
    this.marks = numbers ? new Uint8Array(this.count) : null;
    for (const i of numbers ?? []) this.marks[i] = 1;
    this.upload();
  }

  setLines(pairs) {
    this.lines = new Float32Array(pairs.flatMap(([a, b]) => [this.points[2 * a], this.points[2 * a + 1], this.points[2 * b], this.points[2 * b + 1]]));
    this.redraw();
  }

  upload() {
    if (!this.points) return;
    const { gl } = this;
    const fill = (buffer, data) => { gl.bindBuffer(gl.ARRAY_BUFFER, buffer); gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW); };
    fill(this.buffers.points, this.points);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.buffers.order);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, this.order, gl.STATIC_DRAW);
    fill(this.buffers.colours, this.colours);
    fill(this.buffers.marks, this.marks ?? new Uint8Array(this.count));
    if (this.palette) {
      gl.bindTexture(gl.TEXTURE_2D, this.texture);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, this.palette);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    }
    this.redraw();
  }

  resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio)), height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    this.ratio = ratio;
    if (this.canvas.width === width && this.canvas.height === height) return;
    this.canvas.width = width;
    this.canvas.height = height;
    if (this.fitted || !this.zoom) this.fit();
    this.redraw();
  }

  // ---- the view: the centre in the points' coordinates, and page pixels per unit

  fit() {
    if (!this.points) return;
    const { bounds } = this;
    this.x = bounds.x + bounds.width / 2;
    this.y = bounds.y + bounds.height / 2;
    this.zoom = 0.92 * Math.min(this.canvas.clientWidth / bounds.width, this.canvas.clientHeight / bounds.height);
    this.zoomMin = this.zoom / 4;
    this.fitted = true; // until the user moves
    this.draw();
  }

  move(dx, dy) {
    this.fitted = false;
    this.x -= dx / this.zoom;
    this.y += dy / this.zoom;
    this.drawMoving();
  }

  // Zooms so that what is under (px, py) stays there.
  zoomBy(factor, px = this.canvas.clientWidth / 2, py = this.canvas.clientHeight / 2) {
    const [x, y] = this.placeOf(px, py);
    this.fitted = false;
    this.zoom = Math.max(this.zoomMin, Math.min(this.zoomMin * 40000, this.zoom * factor));
    const [nx, ny] = this.placeOf(px, py);
    this.x += x - nx;
    this.y += y - ny;
    this.drawMoving();
  }

  lookAt(i) {
    this.fitted = false;
    this.x = this.points[2 * i];
    this.y = this.points[2 * i + 1];
    this.zoom = Math.max(this.zoom, this.zoomMin * 4);
    this.draw();
  }

  placeOf(px, py) {
    return [this.x + (px - this.canvas.clientWidth / 2) / this.zoom, this.y - (py - this.canvas.clientHeight / 2) / this.zoom];
  }

  pixelAt(x, y) { return [(x - this.x) * this.zoom + this.canvas.clientWidth / 2, (this.y - y) * this.zoom + this.canvas.clientHeight / 2]; }

  pixelOf(i) { return this.pixelAt(this.points[2 * i], this.points[2 * i + 1]); }

  shown(i) { return !this.palette || this.palette[4 * this.colours[i] + 3] > 0; }

  at(px, py, radius = 10) {
    if (!this.grid) return -1;
    const [x, y] = this.placeOf(px, py);
    return this.grid.nearest(x, y, radius / this.zoom, (i) => this.shown(i));
  }

  // The points inside of a polygon, which is a list of [x, y] on the page.
  inside(polygon) {
    if (!this.grid) return [];
    const corners = polygon.map(([px, py]) => this.placeOf(px, py));
    const xs = corners.map(([x]) => x), ys = corners.map(([, y]) => y), found = [];
    this.grid.within(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys), (i) => {
      const x = this.points[2 * i], y = this.points[2 * i + 1];
      let within = false;
      for (let a = 0, b = corners.length - 1; a < corners.length; b = a++) {
        const [ax, ay] = corners[a], [bx, by] = corners[b];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
      }
      if (within && this.shown(i)) found.push(i);
    });
    return found.sort((a, b) => a - b);
  }

  visible() {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    return this.inside([[0, 0], [w, 0], [w, h], [0, h]]);
  }

  // ---- drawing: once for each frame in which something changed

  // Draws the points again, because they or their looks changed.
  redraw() {
    this.scene.zoom = 0;
    this.draw();
  }

  draw() {
    if (this.waiting || this.closed) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      if (this.busy()) this.draw();
      else this.paint();
    });
  }

  // Is the last frame still being drawn? Frames that pile up would lag behind the pointer.
  busy() {
    const { gl, fence } = this;
    if (!fence || gl.isContextLost() || gl.getSyncParameter(fence, gl.SYNC_STATUS) === gl.SIGNALED) {
      if (fence) gl.deleteSync(fence);
      this.fence = null;
      return false;
    }
    return true;
  }

  drawMoving() {
    this.moving = true;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => { this.moving = false; this.draw(); }, REST_MS);
    this.draw();
  }

  // Points grow with the zoom, and are smaller if there are many of them or the canvas is small.
  size() {
    const room = Math.min(800, Math.sqrt(this.canvas.clientWidth * this.canvas.clientHeight));
    const base = Math.max(1.6, Math.min(5.5, (0.7 * room) / Math.sqrt(this.count)));
    return this.ratio * Math.min(14, base * Math.sqrt(Math.max(1, this.zoom / (4 * this.zoomMin))));
  }

  paint() {
    const { gl, canvas } = this;
    if (this.closed || gl.isContextLost() || !this.points || !this.zoom || !this.ratio) return;
    if (!this.sceneFits()) this.paintScene();
    this.copyScene();
    if (this.loop) {
      const view = { x: this.x, y: this.y, scale: [(2 * this.zoom) / canvas.clientWidth, (2 * this.zoom) / canvas.clientHeight] };
      this.paintLines(view, new Float32Array(this.loop.flatMap(([px, py]) => this.placeOf(px, py))), gl.LINE_LOOP, this.loopInk ?? [0.4, 0.5, 1, 1]);
    }
    this.fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    canvas.dataset.frames = ++this.frames;
    this.onframe?.();
  }

  // ---- the texture with all points

  // Can this frame be copied from the texture?
  sceneFits() {
    const { scene } = this, magnified = this.zoom / scene.zoom;
    if (!scene.zoom || (magnified !== 1 && !(this.moving && magnified <= MAGNIFIED_MAX))) return false;
    const [x, y, width, height] = this.sceneRectangle();
    return x >= 0 && y >= 0 && x + width <= scene.width && y + height <= scene.height;
  }

  // What the canvas shows, in pixels of the texture: left, bottom, width and height.
  sceneRectangle() {
    const { scene, canvas } = this, magnified = this.zoom / scene.zoom, pixels = this.ratio * scene.zoom;
    const width = Math.round(canvas.width / magnified), height = Math.round(canvas.height / magnified);
    return [Math.round((scene.width - width) / 2 + (this.x - scene.x) * pixels), Math.round((scene.height - height) / 2 + (this.y - scene.y) * pixels), width, height];
  }

  // Gives the texture its size. An even border on all sides keeps pixels of texture and canvas aligned.
  resizeScene() {
    const { gl, canvas, scene } = this, limit = gl.getParameter(gl.MAX_TEXTURE_SIZE);
    const larger = (length) => length + 2 * Math.round(Math.max(0, Math.min(limit - length, length * (SCENE_SIZE - 1))) / 2);
    const width = larger(canvas.width), height = larger(canvas.height);
    gl.bindFramebuffer(gl.FRAMEBUFFER, scene.framebuffer);
    if (scene.width === width && scene.height === height) return;
    Object.assign(scene, { width, height });
    gl.bindTexture(gl.TEXTURE_2D, scene.texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, scene.texture, 0);
  }

  paintScene() {
    const { gl, scene } = this;
    this.resizeScene();
    Object.assign(scene, { x: this.x, y: this.y, zoom: this.zoom, scale: [(2 * this.ratio * this.zoom) / scene.width, (2 * this.ratio * this.zoom) / scene.height] });
    gl.viewport(0, 0, scene.width, scene.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.paintLines(scene, this.lines, gl.LINES, this.lineInk ?? [0.5, 0.5, 0.5, 0.7]);
    this.paintPoints(scene);
  }

  copyScene() {
    const { gl, canvas, scene } = this, [x, y, width, height] = this.sceneRectangle();
    gl.bindFramebuffer(gl.READ_FRAMEBUFFER, scene.framebuffer);
    gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, null);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT); // Chromium clears a new frame at its first command, and does not count a copy as one
    gl.blitFramebuffer(x, y, x + width, y + height, 0, 0, canvas.width, canvas.height, gl.COLOR_BUFFER_BIT, width === canvas.width ? gl.NEAREST : gl.LINEAR);
  }

  paintPoints({ x, y, scale }) {
    const { gl } = this;
    gl.useProgram(this.dots.made);
    gl.uniform2f(this.dots.at("centre"), x, y);
    gl.uniform2f(this.dots.at("scale"), ...scale);
    gl.uniform1f(this.dots.at("size"), this.size());
    gl.uniform1i(this.dots.at("marked"), this.marks ? 1 : 0);
    gl.bindTexture(gl.TEXTURE_2D, this.texture);
    const attribute = (number, buffer, size, type) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.enableVertexAttribArray(number);
      if (type === gl.FLOAT) gl.vertexAttribPointer(number, size, type, false, 0, 0);
      else gl.vertexAttribIPointer(number, size, type, 0, 0);
    };
    attribute(0, this.buffers.points, 2, gl.FLOAT);
    attribute(1, this.buffers.colours, 1, gl.UNSIGNED_BYTE);
    attribute(2, this.buffers.marks, 1, gl.UNSIGNED_BYTE);
    gl.drawElements(gl.POINTS, this.count, gl.UNSIGNED_INT, 0);
    gl.disableVertexAttribArray(1);
    gl.disableVertexAttribArray(2);
  }

  paintLines({ x, y, scale }, places, kind, ink) {
    if (!places.length) return;
    const { gl } = this;
    gl.useProgram(this.strokes.made);
    gl.uniform2f(this.strokes.at("centre"), x, y);
    gl.uniform2f(this.strokes.at("scale"), ...scale);
    gl.uniform4f(this.strokes.at("ink"), ...ink);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers.lines);
    gl.bufferData(gl.ARRAY_BUFFER, places, gl.DYNAMIC_DRAW);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.drawArrays(kind, 0, places.length / 2);
  }
}
