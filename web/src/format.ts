// Numbers as the reports in text show them: three digits, with a unit.

import { Row, number, text } from './document';

function threeDigits(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2);
}

function scaled(value: number, base: number, units: string[]): string {
  let unit = 0;
  let scaledValue = value;
  while (Math.abs(scaledValue) >= (base === 1000 ? 999.5 : 1023.5) && unit + 1 < units.length) {
    scaledValue /= base;
    unit++;
  }
  const digits = unit === 0 && Number.isInteger(value) ? String(value) : threeDigits(scaledValue);
  return units[unit] ? `${digits} ${units[unit]}` : digits;
}

export const count = (value: number) => scaled(value, 1000, ['', 'k', 'M', 'G', 'T']);
export const bytes = (value: number) => scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
export const microseconds = (value: number) => (value >= 1e6 ? `${threeDigits(value / 1e6)} s` : value >= 1e3 ? `${threeDigits(value / 1e3)} ms` : `${threeDigits(value)} us`);
export const byteSeconds = (byteMicroseconds: number) => `${bytes(byteMicroseconds / 1e6)} s`;
export const share = (value: number) => `${threeDigits(value * 100)} %`;
// As it is typed into a shell.
export const shellCommand = (words: string[]) => words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`)).join(' ');
// "1 run" of the unit "runs", "2 sets of fields".
const singular = (word: string) => word.replace(/(ss|x|ch|sh)es$|s$/, '$1');
export const counted = (number: number, unit: string) => `${number} ${number === 1 ? unit.replace(/^.*?(?= of |$)/, (nouns) => nouns.split(' ').map(singular).join(' ')) : unit}`;
export const baseName = (path: string) => path.slice(path.lastIndexOf('/') + 1);

// `function at file:line`, as all reports name a frame.
export function frame(of: Row): string {
  const name = text(of, 'function') || text(of, 'address') || '?';
  const file = text(of, 'file');
  return file ? `${name} at ${baseName(file)}:${number(of, 'line')}` : name;
}

// Whether a finding's place, `make at a.cc:3`, is the one that a row names with the whole of the function: `int make<int>(int) at a.cc:3`.
export function isPlace(place: string, whole: string): boolean {
  const at = place.lastIndexOf(' at '), name = /[\w~]+(?=\W*$)/.exec(place.slice(0, Math.max(at, 0)));
  return place === whole || (name !== null && whole.endsWith(place.slice(at)) && whole.slice(0, at - place.length).includes(name[0]));
}

// A long name without parameters, template arguments and outer scopes: `impl::make at a.cc:3`.
export function brief(name: string): string {
  if (name.length <= 40) return name;
  const [, whole, where = ''] = /^(.*?)( (?:at|in) \S+)?$/.exec(name)!;
  let kept = whole.replace(/\(anonymous namespace\)::|\[abi:\w+\]/g, '');
  for (let before = ''; before !== kept; ) {
    before = kept;
    kept = kept.replace(/\([^()]*\)|<[^<>]*>/g, '');
  }
  if (whole.includes('(')) kept = kept.replace(/( const| volatile| &&?)+$/, '').trim().replace(/^.* (?!new|delete)/, ''); // and what it returns
  return kept.split('::').slice(-2).join('::') + where;
}

// What a key of the document says about its unit decides how its number is shown.
export function byKey(key: string, value: number): string {
  if (/_share$|^share$/.test(key)) return share(value);
  if (/percent/.test(key)) return `${threeDigits(value)} %`;
  if (/byte_us$/.test(key)) return byteSeconds(value);
  if (/_us$|^begin$|^end$/.test(key)) return microseconds(value);
  if (/bytes$|^size/.test(key)) return bytes(value);
  if (/^(line|column|pid|thread|id|owner|function_start_line|offset|depth)$/.test(key)) return String(value);
  return count(value);
}
