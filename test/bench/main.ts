// `npm run bench -- <name> [options]`: runs one benchmark; without a name it lists them.
import { benchmarks } from '#test/bench/benchmarks.ts';

const [name, ...args] = process.argv.slice(2);
const found = benchmarks.find((benchmark) => benchmark.name === name);
if (found === undefined) {
  const width = Math.max(...benchmarks.map((benchmark) => benchmark.name.length)) + 2;
  for (const benchmark of benchmarks) console.log(`${benchmark.name.padEnd(width)}${benchmark.about}`);
  if (name !== undefined) console.error(`no benchmark is called ${name}`);
  process.exitCode = name === undefined ? 0 : 1;
} else {
  const { run } = await found.load();
  await run(args);
}
