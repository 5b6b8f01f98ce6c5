// Light, dark, or the system's theme; and paper.

/** Makes the button in the page's head choose the colours; `charts` are redrawn with them. */
function followTheme(charts) {
  const root = document.documentElement;
  const themes = ['auto', 'light', 'dark'];
  const press = document.getElementById('theme');
  const show = (name) => {
    if (name === 'auto') delete root.dataset.theme;
    else root.dataset.theme = name;
    press.textContent = { auto: '◐ Auto', light: '☀ Light', dark: '☾ Dark' }[name];
    press.setAttribute('aria-label', `Colours: ${name}. Press to change.`);
    press.onclick = () => {
      const next = themes[(themes.indexOf(name) + 1) % themes.length];
      try {
        localStorage.setItem('queuescope-theme', next);
      } catch {
        /* a file without storage forgets the choice */
      }
      show(next);
    };
    for (const each of charts) each.refresh();
  };
  let kept = null;
  try {
    kept = localStorage.getItem('queuescope-theme');
  } catch {
    /* as above */
  }
  show(themes.includes(kept) ? kept : 'auto');
  press.hidden = false;
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => charts.forEach((each) => each.refresh()));
}

/** For paper: light, everything open, charts as wide as the sheet. */
function onPaper(charts, before) {
  const root = document.documentElement;
  addEventListener('beforeprint', () => {
    root.dataset.print = '';
    for (const details of document.querySelectorAll('details')) details.open = true;
    before();
    for (const each of charts) each.refresh(680);
  });
  addEventListener('afterprint', () => {
    delete root.dataset.print;
    for (const each of charts) each.refresh();
  });
}
