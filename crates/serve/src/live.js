// The live page around the panels of the report page: its controls, the address that says how they stand, and the results that
// follow them.

// How long a control must rest before the run begins, and how long a run is silent, in ms.
const REST = 60, SILENT = 300;

const sides = [...document.querySelectorAll('.side')].map((element) => ({
  element,
  form: element.querySelector('form'),
  bar: element.querySelector('progress'),
  result: element.querySelector('.result'),
  // The newest request, and the one whose result is still to come.
  request: null,
  awaited: null,
}));

/// The value of a control: what is chosen, or what the place of a slider stands for.
function value(control) {
  return control.dataset.values ? control.dataset.values.split(' ')[control.value] : control.value;
}

/// Shows the value of a slider beside it, and says it to readers of the screen.
function showValue(slider, text) {
  slider.nextElementSibling.textContent = text;
  slider.setAttribute('aria-valuetext', text);
}

/// The query of the page's state: what differs from the scenario's own values.
function query() {
  const source = document.getElementById('source');
  const parts = new URLSearchParams();
  parts.append('scenario', source.value);
  for (const control of document.querySelectorAll('[data-parameter]')) {
    const now = value(control);
    if (now === control.dataset.own) continue;
    const { parameter, key } = control.dataset;
    parts.append(parameter, key ? `${key}=${now}` : now);
  }
  if (sides.length > 1) parts.append('beside', 'yes');
  const step = document.getElementById('step');
  if (step) parts.append('lesson', step.dataset.step);
  return parts;
}

/// The slider of the ratio, the cores, and how many vCPUs there are for each pCPU.
function ratioOf(form) {
  const slider = form.querySelector('.ratio');
  const cores = form.querySelector('[data-key="host.cores"]');
  if (!slider || !cores) return null;
  const vcpus = [...form.querySelectorAll('[data-key$=".vcpus"]')].map((control) => Number(value(control)));
  const all = vcpus.reduce((sum, n) => sum + n, Number(form.dataset.vcpus));
  return { slider, cores, all, threads: Number(form.dataset.threads) };
}

/// The place of the value that is nearest to a number, by its factor.
function nearest(control, wanted) {
  const far = control.dataset.values.split(' ').map((text) => Math.abs(Math.log(Number(text) / wanted)));
  return far.indexOf(Math.min(...far));
}

/// Puts the slider of the ratio where vCPUs and cores are.
function showRatio(form) {
  const ratio = ratioOf(form);
  if (!ratio) {
    form.querySelector('.ratio')?.closest('label').remove();
    return;
  }
  const now = ratio.all / (Number(value(ratio.cores)) * ratio.threads);
  ratio.slider.value = nearest(ratio.slider, now);
  showValue(ratio.slider, `${Math.round(now * 100) / 100} : 1`);
}

/// Asks how far the run is, until it is over.
async function follow(side, request) {
  await new Promise((done) => setTimeout(done, SILENT));
  while (side.awaited === request) {
    side.bar.hidden = false;
    try {
      const part = await (await fetch('progress', { signal: request.signal })).text();
      if (part !== '' && side.awaited === request) side.bar.value = Number(part);
    } catch {
      // The run is over, or the server has gone: the request itself says so.
      return;
    }
    await new Promise((done) => setTimeout(done, SILENT));
  }
}

/// Runs a side, and shows its result. A run that is still under way for it is given up.
async function run(side) {
  side.request?.abort();
  comparison?.abort();
  delete document.getElementById('compared')?.dataset.shown;
  const request = new AbortController();
  side.request = request;
  side.awaited = request;
  side.result.setAttribute('aria-busy', 'true');
  follow(side, request);
  const parts = query();
  parts.append('side', side.element.dataset.side);
  let text;
  try {
    text = await (await fetch(`run?${parts}`, { signal: request.signal })).text();
  } catch (error) {
    if (request.signal.aborted) return;
    text = '';
    const lost = document.createElement('p');
    lost.className = 'warning';
    lost.textContent = `The server does not answer (${error.message}). Start it again: overspin serve`;
    side.result.replaceChildren(lost);
  }
  if (side.request !== request) return;
  side.awaited = null;
  side.bar.hidden = true;
  side.bar.removeAttribute('value');
  if (text !== '') await show(side, text);
  side.result.setAttribute('aria-busy', 'false');
  const answer = side.result.querySelector('[id^=answer]');
  if (answer && side.result.querySelector('[data-more]')) await completeAnswer(answer, parts, request);
  if (side.request !== request) return;
  side.request = null;
  if (sides.length > 1 && sides.every((one) => one.request === null)) compare();
  side.result.dataset.shown = Number(side.result.dataset.shown ?? 0) + 1;
}

/// Says what the other setting does to the first, above both.
let comparison = null;
async function compare() {
  const compared = document.getElementById('compared');
  comparison?.abort();
  comparison = new AbortController();
  const { signal } = comparison;
  try {
    const reply = await fetch(`compare?${query()}`, { signal });
    const text = await reply.text();
    if (signal.aborted) return;
    // Each side says itself what is wrong with it.
    const isOpen = compared.querySelector('details')?.open ?? false;
    compared.innerHTML = reply.ok ? text : '';
    if (isOpen) compared.querySelector('details')?.setAttribute('open', '');
    await enliven(compared);
    compared.dataset.shown = 'yes';
  } catch {
    // A newer setting has come, or the server has gone, which the sides say.
  }
}

/// Asks for the answer again, with what other runs would tell: they take longer, and the reader has the first lines meanwhile.
async function completeAnswer(answer, parts, request) {
  try {
    const text = await (await fetch(`answer?${parts}`, { signal: request.signal })).text();
    const whole = new DOMParser().parseFromString(text, 'text/html').getElementById(answer.id);
    if (!whole || request.signal.aborted) return;
    answer.replaceWith(whole);
    await enliven(whole);
  } catch {
    // A newer setting has come, or the server has gone: what is there stays.
  }
}

/// Puts a result in place of the former one, without moving the page below the reader's eyes.
async function show(side, text) {
  const { result } = side;
  const open = new Set([...result.querySelectorAll('details[open] > summary')].map((s) => s.textContent));
  result.style.minHeight = `${result.offsetHeight}px`;
  result.innerHTML = text;
  for (const summary of result.querySelectorAll('details > summary')) {
    if (open.has(summary.textContent)) summary.parentElement.open = true;
  }
  await enliven(result);
  result.style.minHeight = '';
  const keep = result.querySelector('.keep');
  keep?.addEventListener('click', async () => {
    const reply = await fetch(`keep?${keep.dataset.query}`, { method: 'POST' });
    const said = new DOMParser().parseFromString(await reply.text(), 'text/html').body.textContent;
    keep.replaceWith(said);
  });
  const copy = result.querySelector('.copy');
  copy?.addEventListener('click', async () => {
    await navigator.clipboard.writeText(copy.previousElementSibling.textContent);
    copy.textContent = 'copied';
    setTimeout(() => { copy.textContent = 'copy'; }, 2000);
  });
}

/// Follows the controls: the address says how they stand, and these sides are run again.
let timer;
const waiting = new Set();
function follows(changed) {
  history.replaceState(null, '', `?${query()}`);
  const beside = document.getElementById('beside');
  // The link to two settings begins with the first as it stands.
  if (beside && sides.length === 1) {
    const parts = query();
    for (const set of parts.getAll('set')) parts.append('other', set);
    parts.append('beside', 'yes');
    beside.href = `?${parts}`;
  } else if (beside) {
    const parts = query();
    for (const name of ['other', 'beside']) parts.delete(name);
    beside.href = `?${parts}`;
  }
  changed.forEach((side) => waiting.add(side));
  clearTimeout(timer);
  timer = setTimeout(() => {
    for (const side of sides) if (waiting.delete(side)) run(side);
  }, REST);
}

for (const side of sides) {
  const { form } = side;
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('input', (event) => {
    const control = event.target;
    if (control.classList.contains('ratio')) {
      const ratio = ratioOf(form);
      ratio.cores.value = nearest(ratio.cores, ratio.all / (Number(value(control)) * ratio.threads));
      showValue(ratio.cores, value(ratio.cores));
    } else if (control.dataset.values) {
      showValue(control, value(control));
    }
    showRatio(form);
    const isShared = ['seeds', 'vary'].includes(control.dataset.parameter);
    follows(isShared ? sides : [side]);
  });
  // A browser that goes back puts controls where they were left, not where the address says.
  form.reset();
  for (const slider of form.querySelectorAll('[data-values]:not(.ratio)')) showValue(slider, value(slider));
  showRatio(form);
}

// The page of an address that is none has no list.
document.getElementById('source')?.addEventListener('change', (event) => {
  location.search = new URLSearchParams({ scenario: event.target.value });
});

if (sides.length > 0) follows(sides);
