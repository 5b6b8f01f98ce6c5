// How mouse, wheel, touch and keys move the chart. The chart library handles drags with the mouse.

/** Makes `chart` follow gestures. */
function listen(chart) {
  listenToMouse(chart);
  listenToTouch(chart);
  listenToKeys(chart);
}

function listenToMouse(chart) {
  const { host } = chart;
  let down = null; // where the button went down, to distinguish a drag from a click
  host.addEventListener(
    'pointerdown',
    (event) => {
      down = event.clientX;
    },
    true,
  );
  host.addEventListener('click', (event) => {
    if (down === null || Math.abs(event.clientX - down) > 4) return;
    const burst = chart.burstUnder(event.clientX);
    if (burst) chart.onpick(burst);
  });
  host.addEventListener('mousemove', (event) => {
    host.classList.toggle('over-burst', chart.burstUnder(event.clientX) !== null);
  });
  host.addEventListener(
    'wheel',
    (event) => {
      // The plain wheel scrolls the page; a pinch on a touchpad comes as Ctrl and wheel.
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        chart.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))), chart.time(event.clientX).share);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !chart.all) {
        event.preventDefault();
        chart.pan(event.deltaX / host.clientWidth);
      }
    },
    { passive: false },
  );
}

/** One finger moves the view sideways, two stretch it; vertical moves scroll the page. */
function listenToTouch(chart) {
  const { host } = chart;
  const read = (event) => {
    const at = [...event.touches].map((touch) => touch.clientX);
    if (at.length === 0) return null;
    const [left, right] = [Math.min(...at), Math.max(...at)];
    return { middle: (left + right) / 2, apart: right - left, fingers: at.length };
  };
  let before = null;
  const start = (event) => {
    before = read(event);
    chart.touched = true;
  };
  const move = (event) => {
    const now = read(event);
    if (before && now.fingers === before.fingers) {
      if (now.fingers > 1) {
        if (event.cancelable) event.preventDefault();
        chart.zoom(Math.max(before.apart, 10) / Math.max(now.apart, 10), chart.time(now.middle).share);
      }
      if (!chart.all) chart.pan((before.middle - now.middle) / host.clientWidth);
    }
    before = now;
  };
  const end = (event) => {
    before = read(event);
    if (before) return;
    chart.touched = false;
    chart.show(...chart.range);
  };
  host.addEventListener('touchstart', start, { passive: true });
  host.addEventListener('touchmove', move, { passive: false });
  host.addEventListener('touchend', end, { passive: true });
  host.addEventListener('touchcancel', end, { passive: true });
}

function listenToKeys(chart) {
  const acts = {
    '+': () => chart.zoom(0.5),
    '=': () => chart.zoom(0.5),
    '-': () => chart.zoom(2),
    0: () => chart.reset(),
    Home: () => chart.reset(),
    ArrowLeft: () => chart.pan(-0.25),
    ArrowRight: () => chart.pan(0.25),
  };
  chart.host.addEventListener('keydown', (event) => {
    const act = acts[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}
