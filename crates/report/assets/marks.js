// Lines, whiskers and points of a sweep's plots. A line has a colour and a shape of its points, so that it can be
// distinguished from the others without colours too.

const SHAPES = 6;
const MARKED = HUES + 4; // lines with their own look; the last four have the first colours again, dashed

/** The look of the line with a number, counted from 0. */
function lookOf(number) {
  if (number >= MARKED) return { colour: '--flow-other', shape: 0, dashed: false };
  return { colour: `--flow-${number % HUES}`, shape: number % SHAPES, dashed: number >= HUES };
}

/** A line's point, for a legend. */
const markOf = ({ colour, shape }) =>
  el('span', { class: `swatch shape-${shape}`, 'aria-hidden': 'true', style: { background: `var(${colour})` } });

/** The outline of a point of about `size` pixels around (x, y). */
function shapePath(ctx, shape, x, y, size) {
  const corners = (points) => {
    points.forEach(([right, down], n) => ctx[n === 0 ? 'moveTo' : 'lineTo'](x + right * size, y + down * size));
    ctx.closePath();
  };
  ctx.beginPath();
  if (shape === 0) ctx.arc(x, y, size * 0.95, 0, 2 * Math.PI);
  if (shape === 1)
    corners([
      [-0.85, -0.85],
      [0.85, -0.85],
      [0.85, 0.85],
      [-0.85, 0.85],
    ]);
  if (shape === 2)
    corners([
      [0, -1.15],
      [1.1, 0.8],
      [-1.1, 0.8],
    ]);
  if (shape === 3)
    corners([
      [0, -1.25],
      [1.25, 0],
      [0, 1.25],
      [-1.25, 0],
    ]);
  if (shape === 4)
    corners([
      [0, 1.15],
      [1.1, -0.8],
      [-1.1, -0.8],
    ]);
  if (shape === 5) {
    const [a, b] = [0.4, 1.15];
    corners([
      [-a, -b],
      [a, -b],
      [a, -a],
      [b, -a],
      [b, a],
      [a, a],
      [a, b],
      [-a, b],
      [-a, a],
      [-b, a],
      [-b, -a],
      [-a, -a],
    ]);
  }
}

/** Draws one line: `points` have `x`, `y` and the ends of their whiskers in pixels of the canvas. */
function drawMarks(ctx, points, { look, joined, whiskers, ratio, paper, box }) {
  const colour = cssVariable(look.colour);
  ctx.strokeStyle = colour;
  ctx.lineJoin = 'round';
  if (joined) {
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash(look.dashed ? [5 * ratio, 4 * ratio] : []);
    ctx.beginPath();
    // The line skips values without this figure.
    points.forEach((point, n) => (n === 0 || point.gap ? ctx.moveTo(point.x, point.y) : ctx.lineTo(point.x, point.y)));
    ctx.stroke();
    ctx.setLineDash([]);
  }
  if (whiskers) {
    ctx.lineWidth = ratio;
    ctx.beginPath();
    for (const point of points) drawWhiskers(ctx, point, 3.5 * ratio, box);
    ctx.stroke();
  }
  for (const point of points) {
    shapePath(ctx, look.shape, point.x, point.y, 4.5 * ratio);
    ctx.fillStyle = point.off ? paper : colour;
    ctx.lineWidth = (point.off ? 1.5 : 1) * ratio;
    ctx.strokeStyle = point.off ? colour : paper;
    ctx.fill();
    ctx.stroke();
  }
}

/** Both intervals of a point. An interval that continues beyond the plot has no end mark. */
function drawWhiskers(ctx, { x, y, up, across }, cap, box) {
  if (up && up[0] - up[1] > 1) {
    ctx.moveTo(x, up[0]);
    ctx.lineTo(x, up[1]);
    for (const end of up) {
      if (end < box.top || end > box.top + box.height) continue;
      ctx.moveTo(x - cap, end);
      ctx.lineTo(x + cap, end);
    }
  }
  if (across && across[1] - across[0] > 1) {
    ctx.moveTo(across[0], y);
    ctx.lineTo(across[1], y);
    for (const end of across) {
      if (end < box.left || end > box.left + box.width) continue;
      ctx.moveTo(end, y - cap);
      ctx.lineTo(end, y + cap);
    }
  }
}
