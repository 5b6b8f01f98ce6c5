// What the test of a sweep's plots reads from them and does in them, as one JSON message.
(async () => {
  const later = () => new Promise((done) => setTimeout(done, 50));
  const all = (selector) => [...document.querySelectorAll(selector)];
  const texts = (selector) => all(selector).map((element) => element.textContent);
  const choose = async (name, value) => {
    const select = document.querySelector(`[data-choice="${name}"]`);
    select.value = value;
    select.dispatchEvent(new Event('change'));
    await later();
  };
  const chosen = () => Object.fromEntries(all('[data-choice]').map((select) => [select.dataset.choice, select.value]));
  const plot = (id) => document.querySelector(`#${id} .sweep-plot`);
  const press = (id, key) => plot(id).dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  const tip = (id) => document.querySelector(`#${id} .tip`);
  // The selected point: its position, and its description.
  const meant = (id) => {
    const { left, top } = tip(id).style;
    return [
      parseFloat(left),
      parseFloat(top),
      ...[...tip(id).querySelectorAll('dd')].map((value) => value.textContent),
    ];
  };
  // The points of the line that is `down` lines below the first.
  const line = (id, down = 0) => {
    press(id, 'Escape');
    press(id, 'Home');
    for (let n = 0; n < down; n += 1) press(id, 'ArrowDown');
    press(id, 'Home');
    const points = [meant(id)];
    for (;;) {
      press(id, 'ArrowRight');
      const next = meant(id);
      if (String(next) === String(points.at(-1))) break;
      points.push(next);
    }
    press(id, 'Escape');
    return points;
  };
  const colours = () =>
    all('.sweep-plot canvas').map((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size;
    });
  const rgb = (colour) => {
    const [, digits] = /^#(......)$/.exec(colour);
    return [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16));
  };
  // Whether a colour is at a position in a plot, to a pixel or two.
  const painted = (id, variable, x, y) => {
    const canvas = plot(id).querySelector('canvas');
    const [own, host] = [canvas, plot(id)].map((element) => element.getBoundingClientRect());
    const scale = canvas.width / own.width;
    const [left, top] = [x - own.left + host.left, y - own.top + host.top].map((at) => Math.round(at * scale));
    const wanted = rgb(getComputedStyle(document.documentElement).getPropertyValue(variable).trim());
    const { data } = canvas.getContext('2d').getImageData(left - 2, top, 5, 1);
    return [0, 4, 8, 12, 16].some(
      (at) => data[at + 3] > 100 && wanted.every((part, n) => Math.abs(data[at + n] - part) < 40),
    );
  };
  const observed = {};
  await later();
  observed.sections = texts('main h2');
  observed.first = [chosen(), texts('.caption'), texts('#against h3'), texts('#against .legend button')];
  observed.offered = all('[data-choice=against-up] option').map((option) => option.textContent);
  observed.roles = all('[data-choice="against-parameter-2"] option').map((option) => option.textContent);
  observed.axes = texts('.axis-title');
  observed.announced = [];
  // Panels one below the other would be of no use for places: only one.
  await choose('against-across', 'parameter-0');
  await choose('against-parameter-1', '0');
  observed.log = line('against');
  await choose('against-across', 'parameter-1');
  await choose('against-parameter-0', '0');
  await choose('against-scale', 'zero');
  observed.linear = [line('against'), line('against', 2)];
  const [one, two] = observed.linear[0];
  const step = one[1] - two[1]; // pixels of a millisecond, which are what the second is more
  observed.whiskers = observed.linear[0].map(([x, y], n) => {
    const half = ((n + 1) / 2) * step;
    return [-0.8, 0.8, -1.3].map((part) => painted('against', '--flow-0', x, y + part * half));
  });
  observed.missing = texts('#against .caption');
  document.querySelector('#against .legend button').click();
  await later();
  observed.hidden = [texts('#against .legend [aria-pressed=false]'), line('against')];
  document.querySelector('#against .legend button').click();
  await choose('against-parameter-0', '1');
  observed.none = [texts('#against .caption'), line('against')];
  await choose('against-across', 'parameter-2');
  observed.names = [chosen(), line('against')];
  await choose('against-parameter-0', 'panels');
  await choose('against-parameter-1', 'panels');
  observed.panels = [texts('#against h3'), all('#against canvas').length, texts('#against .legend button')];
  await choose('against-parameter-0', 'lines');
  await choose('against-parameter-1', 'lines');
  observed.lines = [texts('#against .legend button'), texts('#against h3')];
  observed.announced.push(document.getElementById('live').textContent);
  await choose('against-up', 'drop_rate');
  await choose('against-scale', 'log');
  observed.zero = texts('#against .caption');
  await choose('against-up', 'utilisation');
  await choose('against-scale', 'auto');
  observed.close = texts('#against .caption');
  await choose('against-up', 'delay_mean_ns');
  // The other plot, with the pointer.
  observed.scatter = line('scatter');
  plot('scatter').scrollIntoView();
  const box = plot('scatter').getBoundingClientRect();
  const [x, y] = observed.scatter.at(-1);
  const move = (clientX, clientY) => {
    plot('scatter').dispatchEvent(new PointerEvent('pointermove', { clientX, clientY, bubbles: true }));
    return tip('scatter').hidden ? null : meant('scatter');
  };
  observed.pointer = [move(box.left + x + 5, box.top + y - 5), move(box.left + x + 5, box.top + y + 45)];
  press('scatter', 'Home');
  observed.announced.push(document.getElementById('live').textContent);
  press('scatter', 'Escape');
  observed.light = colours();
  while (document.documentElement.dataset.theme !== 'dark') document.getElementById('theme').click();
  await later();
  observed.dark = colours();
  observed.labels = all('.sweep-plot').map((host) => host.getAttribute('aria-label'));
  observed.errors = document.documentElement.dataset.errors ?? '';
  parent.postMessage(JSON.stringify(observed), '*');
})();
