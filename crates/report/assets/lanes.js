// What the chart library does not draw: bursts and drops in two lanes above the plot, shades behind it, the threshold.
// `view` is what is shown: the bursts, the chosen burst, the range, the source, tau.

const LANE = 16; // height of a lane, CSS pixels
const LANES = 2 * LANE + 10;
const MANY_BURSTS = 150; // in view at once

/** The bursts in view with their positions, in device pixels. */
function* spans(plot, view) {
  const x = (ns) => Math.round(plot.valToPos(ns, 'x', true));
  const [from, to] = view.range;
  const inView = view.bursts.filter((burst) => burst.start_ns <= to && burst.start_ns + burst.length_ns >= from);
  const narrowest = (inView.length < MANY_BURSTS ? 4 : 1) * uPlot.pxRatio;
  for (const burst of inView) {
    const left = x(burst.start_ns);
    const width = Math.max(x(burst.start_ns + burst.length_ns) - left, narrowest);
    yield { burst, left, width, chosen: burst === view.chosen, many: inView.length >= MANY_BURSTS };
  }
}

/** The bursts as shades behind the depth. */
function drawShades(plot, view) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const { left, width, chosen, many } of spans(plot, view)) {
    if (many && !chosen) continue; // the lane shows them, and the shades would merge
    ctx.fillStyle = cssVariable(chosen ? '--burst-chosen-shade' : '--burst-shade');
    ctx.fillRect(left, bbox.top, width, bbox.height);
  }
  ctx.restore();
}

/** The lanes of bursts and drops, and the threshold. */
function drawLanes(plot, view) {
  const { ctx, bbox } = plot;
  const dpr = uPlot.pxRatio;
  const x = (ns) => Math.round(plot.valToPos(ns, 'x', true));
  const [from, to] = [bbox.left, bbox.left + bbox.width];
  const bursts = bbox.top - LANES * dpr + 2 * dpr;
  const drops = bursts + (LANE + 3) * dpr;
  const soft = cssVariable('--ink-soft');
  ctx.save();
  ctx.textBaseline = 'middle';
  ctx.font = `${11 * dpr}px ${cssVariable('--font')}`;
  ctx.fillStyle = soft;
  ctx.textAlign = 'right';
  ctx.fillText('bursts', from - 6 * dpr, bursts + (LANE / 2) * dpr);
  ctx.fillText('drops', from - 6 * dpr, drops + (LANE / 2) * dpr);
  ctx.beginPath();
  ctx.rect(from, bursts - dpr, bbox.width, plot.height * dpr);
  ctx.clip();
  drawTau(plot, view);
  ctx.textAlign = 'center';
  let free = from; // labels are omitted where they would touch
  for (const { burst, left, width, chosen } of spans(plot, view)) {
    ctx.fillStyle = cssVariable(chosen ? '--accent' : '--burst');
    ctx.fillRect(left, bursts, width, LANE * dpr);
    if (chosen) {
      ctx.fillRect(left, bursts, dpr, bbox.top + bbox.height - bursts);
      ctx.fillRect(left + width - dpr, bursts, dpr, bbox.top + bbox.height - bursts);
    }
    const label = String(burst.number);
    const middle = (Math.max(left, from) + Math.min(left + width, to)) / 2;
    const half = ctx.measureText(label).width / 2;
    if (half * 2 + 4 * dpr <= Math.min(left + width, to) - Math.max(left, from) && middle - half >= free) {
      ctx.fillStyle = cssVariable(chosen ? '--on-accent' : '--on-burst');
      ctx.fillText(label, middle, bursts + (LANE / 2 + 0.5) * dpr);
      free = middle + half + 3 * dpr;
    }
  }
  ctx.fillStyle = cssVariable('--bad');
  const source = view.source;
  let last = -1;
  for (
    let at = Math.max(0, source.at(view.range[0]));
    at < source.drops.length && source.edges[at] <= view.range[1];
    at += 1
  ) {
    if (!source.drops[at]) continue;
    const left = x(source.edges[at]);
    const width = source.outline ? 3 * dpr : Math.max(x(source.edges[at + 1]) - left, 2 * dpr);
    if (left + width <= last) continue;
    ctx.fillRect(Math.max(left, last), drops + 3 * dpr, left + width - Math.max(left, last), (LANE - 6) * dpr);
    last = left + width;
  }
  ctx.restore();
}

/** The threshold above which a wait belongs to a burst. */
function drawTau(plot, view) {
  const tau = view.tau;
  const { ctx, bbox } = plot;
  const dpr = uPlot.pxRatio;
  if (!(tau > 0) || tau > plot.scales.delay.max) return;
  const y = Math.round(plot.valToPos(tau, 'delay', true));
  ctx.strokeStyle = ctx.fillStyle = cssVariable('--ink');
  ctx.lineWidth = dpr;
  ctx.setLineDash([4 * dpr, 4 * dpr]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y + 0.5);
  ctx.lineTo(bbox.left + bbox.width, y + 0.5);
  ctx.stroke();
  ctx.setLineDash([]);
  const text = `tau ${duration(tau)}`;
  const width = ctx.measureText(text).width;
  const right = bbox.left + bbox.width - 6 * dpr;
  const above = y - 9 * dpr > bbox.top + 8 * dpr ? y - 9 * dpr : y + 9 * dpr;
  ctx.fillStyle = cssVariable('--surface');
  ctx.globalAlpha = 0.8;
  ctx.fillRect(right - width - 4 * dpr, above - 7 * dpr, width + 8 * dpr, 14 * dpr);
  ctx.globalAlpha = 1;
  ctx.fillStyle = cssVariable('--ink');
  ctx.textAlign = 'right';
  ctx.fillText(text, right, above);
}
