// The document in this page: the same keys and values as `--format json`, kept as tables (report/node_table.h).

export type Scalar = string | number | boolean | null;
export type Value = Scalar | Row | Value[];
export interface Row {
  [key: string]: Value;
}

type Reference = [table: number, row: number]; // table -1: a list
type Stored = Scalar | Reference;
interface Tables {
  root: Stored;
  tables: { keys: string[]; columns: Stored[][] }[];
  lists: Stored[][];
}

// Rows are made when they are asked for, and read from their columns: a page of 100,000 contexts opens at once.
export function readTables(stored: Tables): Value {
  const lists: Value[][] = new Array(stored.lists.length);
  const tables = stored.tables.map(({ keys, columns }) => {
    class TableRow {
      constructor(readonly row: number) {}
      toJSON() {
        return Object.fromEntries(keys.map((key) => [key, (this as unknown as Row)[key]]));
      }
    }
    keys.forEach((key, column) => {
      Object.defineProperty(TableRow.prototype, key, {
        enumerable: true,
        get(this: TableRow) {
          return valueOf(columns[column][this.row]);
        },
      });
    });
    Object.defineProperty(TableRow.prototype, keysOfRow, { value: keys });
    return { make: (row: number) => new TableRow(row) as unknown as Row, rows: [] as Row[] };
  });
  function valueOf(value: Stored): Value {
    if (!Array.isArray(value)) return value;
    const [table, row] = value;
    if (table < 0) return (lists[row] ??= stored.lists[row].map(valueOf));
    const of = tables[table];
    return (of.rows[row] ??= of.make(row));
  }
  return valueOf(stored.root);
}

const keysOfRow = Symbol('keys');
export function keys(row: Row): string[] {
  return (row as unknown as { [keysOfRow]: string[] })[keysOfRow] ?? Object.keys(row);
}

export async function embeddedDocument(): Promise<Row> {
  const text = document.getElementById('data')?.textContent;
  if (!text) throw new Error('this page has no data; make one with `assay heap --format html -o report.html`');
  const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return readTables(JSON.parse(await new Response(plain).text())) as Row;
}

export function isRow(value: Value | undefined): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// The rows of a list; none if there is no such list.
export function rows(value: Value | undefined): Row[] {
  return Array.isArray(value) ? value.filter(isRow) : [];
}

// Numbers and texts by a path such as `size.total`; 0 and '' where there is none.
export function at(row: Row, path: string): Value {
  let value: Value = row;
  for (const key of path.split('.')) {
    if (!isRow(value)) return null;
    value = value[key] ?? null;
  }
  return value;
}
export function number(row: Row, path: string): number {
  const value = at(row, path);
  return typeof value === 'number' ? value : 0;
}
export function text(row: Row, path: string): string {
  const value = at(row, path);
  return typeof value === 'string' ? value : '';
}
