// The page around the timelines: theme, tables, raw data, keys of the whole page.

/// Sorts the body of a table by a column: numbers by value, other text by its letters. Rows that are no number come last.
function sortTable(table, column, descending) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const text = (row) => row.cells[column]?.textContent.trim() ?? '';
  const number = (row) => {
    const plain = text(row).replace(/[,%]/g, '');
    return plain === '' ? NaN : Number(plain);
  };
  const numeric = rows.some((row) => !Number.isNaN(number(row)))
    && rows.filter((row) => Number.isNaN(number(row))).length <= rows.length / 2;
  const order = (a, b) => {
    if (!numeric) return text(a).localeCompare(text(b), 'en', { numeric: true });
    const [x, y] = [number(a), number(b)];
    if (Number.isNaN(x) || Number.isNaN(y)) return (Number.isNaN(x) - Number.isNaN(y)) * (descending ? -1 : 1);
    return x - y;
  };
  rows.sort((a, b) => (descending ? -order(a, b) : order(a, b)));
  body.append(...rows);
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    // A column of remarks has no name.
    if (head.textContent.trim() === '') return;
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      // Numbers are most often wanted from the largest.
      const first = head.classList.contains('number') ? 'descending' : 'ascending';
      const now = head.getAttribute('aria-sort');
      const next = now === null ? first : now === 'ascending' ? 'descending' : 'ascending';
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', next);
      sortTable(table, column, next === 'descending');
    });
  });
}

/// Hands out data that the page holds as a file.
async function download(button) {
  const bytes = await inflate(document.getElementById(button.dataset.raw).textContent);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([bytes]));
  link.download = button.dataset.name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// What is wider than the page scrolls, and then the keyboard must reach it.
const scrolls = new ResizeObserver((all) => {
  for (const { target } of all) {
    if (target.scrollWidth > target.clientWidth) {
      target.tabIndex = 0;
      target.setAttribute('role', 'group');
      target.setAttribute('aria-label', 'wider than the page: arrow keys scroll it');
    } else {
      for (const name of ['tabindex', 'role', 'aria-label']) target.removeAttribute(name);
    }
  }
});

// The timelines of the page; keys go to the last one that was used.
let timelines = [];
let current;

/// Starts what is inside of an element: tables, raw data, wide regions, timelines.
async function enliven(root) {
  for (const table of root.querySelectorAll('table.sortable')) makeSortable(table);
  for (const button of root.querySelectorAll('button[data-raw]')) {
    button.addEventListener('click', () => download(button));
  }
  for (const region of root.querySelectorAll('.wide, pre')) scrolls.observe(region);
  const started = await startTimelines(root);
  // A live page has taken others away.
  timelines = [...timelines.filter((timeline) => timeline.element.isConnected), ...started];
  window.overspin = { timelines, inflate };
  for (const timeline of started) {
    timeline.element.addEventListener('pointerdown', () => { current = timeline; });
    timeline.element.addEventListener('focusin', () => { current = timeline; });
  }
  if (!timelines.includes(current)) current = timelines[0];
}

// The theme of the system, until somebody chooses one.
const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');
let chosen = null;
function applyTheme() {
  document.documentElement.classList.toggle('dark', chosen ?? prefersDark.matches);
  for (const timeline of timelines) timeline.theme();
}
applyTheme();

await enliven(document);
prefersDark.addEventListener('change', applyTheme);
document.getElementById('theme').addEventListener('click', () => {
  chosen = !document.documentElement.classList.contains('dark');
  applyTheme();
});

// Keys work wherever the focus is, unless it is where keys have another meaning.
document.addEventListener('keydown', (event) => {
  const other = event.target.closest?.('input, textarea, select, canvas');
  if (other || !current || !['n', 'N', '/'].includes(event.key)) return;
  current.element.scrollIntoView({ block: 'nearest' });
  current.key(event);
});

document.documentElement.dataset.ready = 'yes';
