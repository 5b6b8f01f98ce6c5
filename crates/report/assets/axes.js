// What all charts' axes share.

// Steps between the labels of time; a quarter of a step would need one more digit than the labels have.
const STEPS = Array.from({ length: 16 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

// Round numbers on log axes: by 1, 2, 5, from a thousandth of a millionth on.
const LOG_STEPS = Array.from({ length: 25 }, (_, at) => [1, 2, 5].map((digit) => Number(`${digit}e${at - 9}`))).flat();

/** The look of axes, and the width of one at `least`: wide enough for its longest label, such as a delay of an hour. */
function axisLook(narrow) {
  const [size, font] = [narrow ? 11 : 12, cssVariable('--font')];
  const axis = {
    stroke: cssVariable('--ink-soft'),
    font: `${size}px ${font}`,
    grid: { stroke: cssVariable('--rule'), width: 1 },
    ticks: { stroke: cssVariable('--rule'), width: 1, size: 4 },
    gap: 4,
  };
  const room = (least) => (plot, labels) => {
    plot.ctx.font = `${size * uPlot.pxRatio}px ${font}`;
    const widest = Math.max(0, ...(labels ?? []).map((label) => plot.ctx.measureText(label ?? '').width));
    return Math.max(least, Math.ceil(widest / uPlot.pxRatio) + 12);
  };
  return [axis, room];
}

/** Round numbers from `least` to `most` on a log axis, at most `room`: in steps of 1, 2, 5, or powers of ten. */
function logSteps(least, most, room) {
  const all = LOG_STEPS.filter((step) => step >= least && step <= most);
  if (all.length === 0) return [least, most];
  const tens = all.filter((step) => step.toExponential().startsWith('1e'));
  const steps = all.length <= room || tens.length < 2 ? all : tens;
  const sparse = Math.ceil(steps.length / room);
  return steps.filter((_, at) => at % sparse === 0);
}
