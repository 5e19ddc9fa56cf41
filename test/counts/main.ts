// `npm run test:counts -- <folder> [--status N]`: names what failed in the reports of a folder, then ends with one line of counts. `--status` is what the
// runs ended with: where that is not 0 although no report tells of a failure, a run died before it could, or failed beside its tests, and that is one.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Report, countsOf, failuresOf, ranAgainOf, toWords } from '#test/counts/counts.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { status: { type: 'string', default: '0' } },
});
const [folder = '.'] = positionals;
const reports = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .toSorted()
  .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Report);
const counts = countsOf(reports);
const isUntold = values.status !== '0' && counts.failed === 0;
const untold = `a run ended with exit code ${values.status}, and no report says why: its words are above`;
for (const line of ranAgainOf(reports, process.cwd())) console.log(line);
for (const failure of isUntold ? [untold] : failuresOf(reports, process.cwd())) console.log(`failed: ${failure}`);
console.log(toWords(isUntold ? { ...counts, failed: 1 } : counts));
