// pages.mjs FOLDER: opens the pages that are there and reads back what --json says.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { deflateSync, inflateSync } from 'node:zlib';

const folder = process.argv[2];
const { chromium } = createRequire(`${folder}/sources/`)('playwright-core');
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync', '--no-first-run'] });
const context = await browser.newContext({ viewport: { width: 1400, height: 1000 } });
const complaints = [];

async function open(name, hash = '') {
  const page = await context.newPage();
  page.on('pageerror', (error) => complaints.push(`${name}: ${error.message}`));
  page.on('request', (request) => { if (!/^(file|data|blob):/.test(request.url())) complaints.push(`${name} asks for ${request.url()}`); });
  await page.goto(`file://${folder}/${name}.html${hash}`);
  await page.waitForSelector('#app[data-ready]');
  return page;
}
const json = (name) => JSON.parse(readFileSync(`${folder}/${name}.json`, 'utf8'));
const tabs = (page) => page.$$eval('[role=tab]', (all) => all.map((tab) => tab.id));
const column = (page, table, title) => page.$eval(`[data-name="${table}"]`, (section, name) => {
  const at = [...section.querySelectorAll('thead th')].findIndex((header) => header.textContent === name);
  return [...section.querySelectorAll(':scope > .scroll > table > tbody > tr:not(.detail)')].map((row) => row.cells[at].dataset.value ?? row.cells[at].textContent);
}, title);

// Writes a page like `name`, with other data: `change` is given the tables (report/node_table.h).
function altered(name, as, change) {
  const page = readFileSync(`${folder}/${name}.html`, 'utf8');
  const [whole, before, data] = page.match(/(<script[^>]*id="data"[^>]*>)([^<]+)/);
  const tables = JSON.parse(inflateSync(Buffer.from(data, 'base64')));
  change(tables);
  writeFileSync(`${folder}/${as}.html`, page.replace(whole, () => before + deflateSync(JSON.stringify(tables)).toString('base64')));
}
const listOf = (tables, key) => { const [table, row] = tables.root, { keys, columns } = tables.tables[table]; return tables.lists[columns[keys.indexOf(key)][row][1]]; };
const columnsOf = (tables, key) => tables.tables.filter((each) => each.keys.includes(key)).map((each) => each.columns[each.keys.indexOf(key)]);

// Each page holds its document, whole; each of its views opens and shows something.
for (const name of ['heap', 'workingset', 'fields', 'objects', 'values', 'report', 'diff', 'explain', 'trace-info', 'trace-counts', 'trace-cache', 'trace-reuse', 'trace-mrc']) {
  assert(existsSync(`${folder}/${name}.html`), name);
  const page = await open(name);
  const embedded = JSON.parse(await page.evaluate(() => JSON.stringify(window.assayDocument)));
  const expected = json(name);
  if (name === 'explain') embedded.summary.cpu_seconds = expected.summary.cpu_seconds; // it was made twice
  assert.deepEqual(embedded, expected, `${name}: the page has other data than --json`);
  const ids = await tabs(page);
  assert(ids.length >= 2, `${name}: ${ids}`);
  for (const id of ids) {
    await page.click(`#${id}`);
    assert.equal(await page.getAttribute(`#${id}`, 'aria-selected'), 'true');
    const shown = await page.$eval('#panel', (panel) => ({ text: panel.innerText.length, parts: panel.querySelectorAll('tbody tr, .flame button, canvas, li, dd, .histogram i, .empty').length }));
    assert(shown.text > 40 && shown.parts > 0, `${name} ${id}: ${JSON.stringify(shown)}`);
    const row = page.locator('#panel tr.opens').first();
    if (await row.count()) {
      await row.click();
      assert((await page.locator('#panel tr.detail').first().innerText()).length > 10, `${name} ${id}: nothing opens`);
    }
  }
  await page.screenshot({ path: `${folder}/${name}.png` });
  await page.close();
}

// Heap: numbers are those of the JSON; sorting, filtering, the tree, the keyboard, several programs.
{
  const page = await open('heap', '#heap-sites');
  const sites = json('heap').sites;
  const bytes = sites.map((site) => site.size.total).sort((a, b) => b - a);
  assert.deepEqual((await column(page, 'allocation sites', 'bytes')).map(Number), bytes);
  // A site opens to all of its call stacks.
  const bySize = [...sites].sort((a, b) => b.size.total - a.size.total);
  for (let at = 0; at < bySize.length; at++) {
    await page.locator('#panel tr.opens').nth(at).click();
    const opened = await page.locator('#panel tr.detail p').first().innerText();
    assert(opened.startsWith(`${bySize[at].contexts} call stack`), `${at}: ${opened}, ${bySize[at].contexts}`);
    await page.locator('#panel tr.opens').nth(at).click();
  }
  await page.click('[data-name="allocation sites"] thead button:text-is("objects")');
  assert.deepEqual((await column(page, 'allocation sites', 'objects')).map(Number), sites.map((site) => site.alloc_count).sort((a, b) => b - a));
  assert.equal(await page.locator('#injected').count(), 0);
  assert((await page.innerText('.command')).includes('</script><b id=injected>'));

  await page.click('#tab-heap-tree');
  assert((await page.innerText('.flame')).includes('main'));
  const whole = page.locator('.flame button').first();
  const before = await whole.getAttribute('aria-label');
  await page.locator('.flame button', { hasText: /^main$/ }).click();
  assert.match(await whole.getAttribute('aria-label'), /^main: /);
  await page.keyboard.press('Escape');
  assert.notEqual(await whole.getAttribute('aria-label'), before.replace('all', 'main'));
  await page.fill('[aria-label="find functions"]', 'main');
  assert((await page.locator('.flame button.found').count()) > 0);

  await page.focus('#tab-heap-tree');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'tab-heap-types');
  assert((await column(page, 'types', 'type')).includes('Order'), 'types');
  await page.close();
}

// What was not counted is not known, neither in tables nor in the tree; it stands last.
{
  const page = await open('heap', '#heap-sites');
  const sites = json('heap').sites;
  const counted = sites.filter((site) => site.accesses_counted);
  assert(counted.length > 0 && counted.length < sites.length, 'sites of both kinds');
  for (const [title, of] of [['accesses', (site) => site.access_count.total], ['used', (site) => site.used_share], ['untouched', (site) => site.cold_byte_us]]) {
    await page.click(`[data-name="allocation sites"] thead button:text-is("${title}")`);
    const shown = await column(page, 'allocation sites', title);
    assert.deepEqual(shown, [...counted.map(of).sort((a, b) => b - a).map(String), ...new Array(sites.length - counted.length).fill('-')], title);
  }
  await page.click('#tab-heap-tree');
  await page.selectOption('[aria-label="measure"]', 'untouched bytes × time');
  const unknown = json('heap').contexts.filter((each) => !each.accesses_counted).length;
  assert((await page.innerText('.tree output')).endsWith(`; not known of ${unknown}`), await page.innerText('.tree output'));
  await page.close();
}

// Of a run that was killed no peak is known.
{
  altered('heap', 'heap-killed', (tables) => { for (const key of ['at_peak_bytes', 'peak_bytes']) for (const all of columnsOf(tables, key)) all.fill(null); });
  const page = await open('heap-killed', '#heap-types');
  assert((await column(page, 'types', 'at peak')).every((each) => each === '-'));
  await page.click('#tab-heap-tree');
  await page.selectOption('[aria-label="measure"]', 'bytes at the peak');
  assert.equal(await page.innerText('.tree output'), 'bytes at the peak: not known');
  await page.close();
}

// The filter's ^ and $ are the ends of a cell.
{
  altered('heap', 'heap-many', (tables) => { const list = listOf(tables, 'types'); while (list.length <= 12) list.push(...list); });
  const page = await open('heap-many', '#heap-types');
  for (const [pattern, types] of [['^Order$', ['Order']], ['^rder', []], ['Orde$', []], ['^(order|node)$', ['Node', 'Order']]]) {
    await page.fill('[aria-label="filter types"]', pattern);
    assert.deepEqual([...new Set(await column(page, 'types', 'type'))].sort(), types, pattern);
  }
  await page.close();
}

// Adds rows to a list of the document: `of` are objects of the same keys.
function addRows(tables, key, of) {
  const keys = Object.keys(of[0]), table = tables.tables.length;
  tables.tables.push({ keys, columns: keys.map((each) => of.map((row) => row[each])) });
  listOf(tables, key).push(...of.map((_, row) => [table, row]));
}

// Each finding leads to rows that it is about, in the view that has them, or nowhere.
async function followFindings(name, to) {
  const page = await open(name, '#findings');
  for (const [at, [view, table, title, cell]] of to.entries()) {
    await page.click('#tab-findings');
    const button = page.locator(`.findings li:nth-child(${at + 1}) button`);
    assert.equal(await button.count(), view ? 1 : 0, `${name} ${at}`);
    if (!view) continue;
    await button.click();
    assert.equal(await page.getAttribute(`#tab-${view}`, 'aria-selected'), 'true', `${name} ${at}`);
    const cells = await column(page, table, title);
    assert(cells.length > 0 && cells.every((each) => each === cell), `${name} ${at}: ${cells}, not ${cell}`);
  }
  await page.close();
}
{
  const found = { rule: 'any', message: 'it is so', location: '', evidence: '', action: 'this' };
  const { site, type } = json('report').findings[0];
  await followFindings('report', [['report-sites', 'sites', 'site', site]]);
  altered('report', 'report-types', (tables) => {
    listOf(tables, 'findings').length = 0;
    addRows(tables, 'findings', [{ ...found, type, site: null }, { ...found, type, site: 'gone' }, { ...found, type: 'gone', site: null }, { ...found, type: null, site: null }]);
  });
  await followFindings('report-types', [['report-types', 'types', 'type', type], ['report-types', 'types', 'type', type], [], []]);

  const whole = 'bool impl::(anonymous namespace)::make<char*, int>(char*&, int)', line = json('heap').findings[0].location.replace('main', '');
  altered('heap', 'heap-named', (tables) => {
    for (const all of columnsOf(tables, 'function')) for (const at in all) if (all[at] === 'main') all[at] = whole;
    for (const all of columnsOf(tables, 'location')) all.fill(`impl::(anonymous namespace)::make${line}`);
    listOf(tables, 'findings').length = 1;
    addRows(tables, 'findings', [{ ...found, location: `impl::(anonymous namespace)::other${line}` }]);
  });
  await followFindings('heap-named', [['heap-sites', 'allocation sites', 'where', whole + line], []]);

  const owner = json('workingset').owners[0].name;
  altered('workingset', 'workingset-found', (tables) => addRows(tables, 'findings', [{ ...found, location: owner }, { ...found, location: 'gone at it.c:1' }]));
  await followFindings('workingset-found', [...json('workingset').findings.map((each) => ['workingset-owners', 'owners', 'owner', each.location]), ['workingset-owners', 'owners', 'owner', owner], []]);

  const struct = json('fields').structs.find((each) => each.name === 'Order');
  altered('fields', 'fields-found', (tables) => {
    listOf(tables, 'findings').length = 0;
    addRows(tables, 'findings', [{ ...found, location: `Order pages.cc:${struct.line}` }, { ...found, location: 'Order other.cc:1' }]);
  });
  await followFindings('fields-found', [['fields-structs', 'structs', 'struct', 'Order'], []]);
  await followFindings('objects', json('objects').findings.map((each) => ['objects-groups', 'groups of objects', 'group', each.location]));

  const called = json('values').executables[0].instructions[0].function;
  altered('values', 'values-found', (tables) => {
    listOf(tables, 'findings').length = 0;
    addRows(tables, 'findings', [{ ...found, location: `${called} pages.cc:30` }]);
  });
  await followFindings('values-found', [['values-functions', 'functions', 'function', called]]);
  const missing = json('trace-cache').instructions.find((each) => each.file);
  altered('trace-cache', 'trace-cache-found', (tables) => {
    listOf(tables, 'findings').length = 0;
    addRows(tables, 'findings', [{ ...found, location: `${missing.function} ${missing.file.replace(/.*\//, '')}:${missing.line}` }]);
  });
  await followFindings('trace-cache-found', [['cache-instructions', 'instructions', 'where', `${missing.function} at ${missing.file.replace(/.*\//, '')}:${missing.line}`]]);
}

// A finding leads to its row.
{
  const page = await open('heap', '#findings');
  const finding = json('heap').findings[0];
  assert((await page.innerText('.findings li:first-child')).includes(finding.message));
  await page.locator('.findings li:first-child button').click();
  assert.equal(await page.getAttribute('#tab-heap-sites', 'aria-selected'), 'true');
  assert((await page.locator('#panel tr.opens').count()) >= 1, 'the finding names a row');
  await page.close();
}

// What was not measured stands in the header; what a finding has at stake, beside it.
{
  const { modules, modules_instrumented } = json('heap').coverage;
  assert(modules_instrumented < modules);
  const heap = await open('heap');
  assert((await heap.innerText('.losses')).includes(`${modules_instrumented} of ${modules} modules`));
  await heap.close();
  const report = await open('report', '#findings');
  const [first] = json('report').findings;
  assert.match(await report.innerText('.findings li:first-child'), new RegExp(`at stake: ${String(first.weight_share * 100).slice(0, 2)}[.\\d]* % of the run`));
  await report.close();
}

// What is missing is said as the reports in text do: how much of what.
{
  altered('heap', 'heap-losses', (tables) => addRows(tables, 'losses', [[1, 'runs'], [3, 'processes'], [1, 'processes'], [1, 'sets of fields'], [2, 'sets of fields'], [1, 'pools or events']].map(([count, unit]) => ({ kind: 'any', count, unit, why: 'had too much', remedy: 'have less' }))));
  const page = await open('heap-losses');
  const said = await page.$$eval('.losses li', (all) => all.map((each) => each.textContent));
  for (const counted of ['1 run', '3 processes', '1 process', '1 set of fields', '2 sets of fields', '1 pool or event']) assert(said.includes(`${counted}: had too much; have less`), `${counted}: ${said}`);
  await page.close();
}

// Of several programs the header does not name one.
{
  altered('heap', 'heap-programs', (tables) => {
    const [table, row] = tables.root, { keys, columns } = tables.tables[table];
    tables.tables.push({ keys: [...keys], columns: columns.map((each) => [each[row]]) });
    keys.push('programs');
    columns.push(columns[0].map(() => [-1, tables.lists.length]));
    tables.lists.push([[tables.tables.length - 1, 0], [tables.tables.length - 1, 0]]);
  });
  const page = await open('heap-programs');
  const { build_id } = json('heap').program;
  assert.match(await page.innerText('header'), /2 programs: pages, pages/);
  assert(!(await page.innerText('header')).includes(build_id));
  await page.selectOption('select[aria-label="program"]', { index: 1 });
  assert((await page.innerText('header')).includes(build_id));
  await page.close();
}

// Objects: where a cell is larger than a line, a row is many lines and holds its cells.
{
  altered('objects', 'objects-large', (tables) => {
    for (const all of columnsOf(tables, 'cell_bytes')) all.fill(128);
    for (const all of columnsOf(tables, 'accessed_share')) { const of = tables.tables.find((each) => each.columns.includes(all)), offsets = of.columns[of.keys.indexOf('offset')]; offsets.forEach((offset, at) => (offsets[at] = offset * 32)); }
  });
  const page = await open('objects-large', '#objects-groups');
  await page.locator('tr.opens').first().click();
  assert.match(await page.innerText('.words figcaption'), /^A row is 32 lines, 2 KiB; a cell is 128 bytes/);
  const outside = await page.$$eval('.word', (all) => all.filter((each) => each.getBoundingClientRect().right > each.parentElement.getBoundingClientRect().right + 1).length);
  assert.equal(outside, 0, 'cells outside their row');
  await page.close();
}

// Working set: one process at a time, by its id.
{
  const page = await open('workingset', '#workingset-time');
  const all = [json('workingset'), ...json('workingset').processes];
  assert.equal(all.length, 2);
  const titles = await page.$$eval('select[aria-label="program"] option', (options) => options.map((option) => option.textContent));
  for (const [at, { pid, snapshots }] of all.entries()) {
    assert(titles[at].startsWith(`process ${pid}: `), titles[at]);
    await page.selectOption('select[aria-label="program"]', titles[at]);
    assert.deepEqual((await column(page, 'periods', 'bytes')).map(Number), snapshots.map((each) => each.bytes));
  }
  await page.close();
}

// Fields: the drawing has a cell for each field of the struct, at its offset.
{
  const page = await open('fields', '#fields-structs');
  const struct = json('fields').structs.find((each) => each.name === 'Order');
  await page.locator('tr.opens', { hasText: 'Order' }).first().click();
  const lines = await page.locator('.struct .line').count();
  assert.equal(lines, Math.ceil(struct.size / 64));
  for (const field of struct.fields) assert((await page.locator(`.struct .cell[title^="${field.name}: "]`).count()) >= 1, field.name);
  // What std::atomic is made of has no names of its own.
  assert(struct.fields.some((field) => field.short_name === 'count' && field.name !== 'count'), JSON.stringify(struct.fields));
  assert.deepEqual(await column(page, 'fields of Order', 'field'), struct.fields.map((field) => field.short_name));
  await page.close();
}

// Working set: the chart reaches the last period's end, also if there is one period only.
{
  altered('workingset', 'workingset-once', (tables) => {
    const list = listOf(tables, 'snapshots');
    const [table, row] = list[0];
    list.length = 1;
    for (const [key, value] of [['begin', 0], ['end', 3e6]]) tables.tables[table].columns[tables.tables[table].keys.indexOf(key)][row] = value;
  });
  const page = await open('workingset-once', '#workingset-time');
  await page.waitForSelector('.chart canvas');
  const over = await page.locator('.u-over').boundingBox();
  await page.mouse.move(over.x + over.width - 3, over.y + over.height / 2);
  assert.equal(await page.innerText('.u-legend .u-series:first-child .u-value'), '0 us to 3 s');
  const colours = await page.$eval('.chart canvas', (canvas) => {
    const { width, height } = canvas, data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    let coloured = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] && Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]) > 60) coloured++;
    return coloured / (width * height);
  });
  assert(colours > 0.1, `nothing is drawn of the only period: ${colours}`);
  await page.mouse.click(over.x + over.width - 3, over.y + over.height / 2);
  assert.match(await page.innerText('.chosen'), / from 0 us to 3 s/);
  await page.close();
}

// Working set: all of a step is its period's; no owner is taken out of the stack.
{
  altered('workingset', 'workingset-steps', (tables) => {
    listOf(tables, 'snapshots').forEach(([table, row], at) => {
      for (const [key, value] of [['begin', at * 1e6], ['end', (at + 1) * 1e6]]) tables.tables[table].columns[tables.tables[table].keys.indexOf(key)][row] = value;
    });
  });
  const page = await open('workingset-steps', '#workingset-time');
  const over = await page.locator('.u-over').boundingBox(), periods = json('workingset').snapshots.length;
  assert(periods > 1, 'several periods');
  const time = (at) => (at ? `${at} s` : '0 us');
  for (const at of [0, periods - 2, periods - 1])
    for (const part of [0.1, 0.4, 0.6, 0.9]) {
      const x = over.x + (over.width * (at + part)) / periods, y = over.y + over.height / 2;
      await page.mouse.move(x, y);
      assert.equal(await page.innerText('.u-legend .u-series:first-child .u-value'), `${time(at)} to ${time(at + 1)}`);
      await page.mouse.click(x, y);
      assert((await page.innerText('.chosen')).includes(` from ${time(at)} to ${time(at + 1)}`), `${at + part}: ${await page.innerText('.chosen')}`);
    }
  await page.mouse.move(0, 0);
  const drawn = () => page.$eval('.chart canvas', (canvas) => canvas.toDataURL());
  const before = await drawn();
  await page.locator('.u-legend .u-series:last-child th').click();
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  assert((await drawn()) === before, 'a click in the legend changes the stack');
  await page.close();
}

// Working set: the largest period is in the table; dark pages are drawn, too.
{
  await context.close();
  const dark = await browser.newContext({ colorScheme: 'dark', viewport: { width: 1400, height: 1000 } });
  const page = await dark.newPage();
  page.on('pageerror', (error) => complaints.push(`dark: ${error.message}`));
  await page.goto(`file://${folder}/workingset.html#workingset-time`);
  await page.waitForSelector('canvas');
  assert.deepEqual((await column(page, 'periods', 'bytes')).map(Number), json('workingset').snapshots.map((each) => each.bytes));
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(20, 23, 26)');
  await page.screenshot({ path: `${folder}/workingset-dark.png` });
}
await browser.close();
assert.deepEqual(complaints, []);
console.log('all pages hold and show what --json says');
