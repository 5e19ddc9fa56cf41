// The documents as files: links lead somewhere, the README is short, tables fit a screen, and every block says whether a test runs it.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseCommandLine, splitCommand } from '#cli/options.ts';
import { commands } from '#cli/run.ts';
import { HarvesterImageSpec, backendNames } from '#shared/api/harvester/image.ts';
import { HyperCloudImageSpec, hyperCloudSources } from '#shared/api/hypercloud/image.ts';
import { anchorOf } from '#infra/site/pages.ts';
import packageFile from '../../package.json' with { type: 'json' };

const root = join(import.meta.dirname, '../..');
const folders = ['docs', 'functions', 'events', 'shared', 'infra', 'local-cluster', 'cli', 'test'];
const documents = [
  'README.md',
  'AGENTS.md',
  'CHANGELOG.md',
  ...folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.md') && !path.includes('node_modules'))
      .map((path) => join(folder, path)),
  ),
];
const guides = documents.filter((path) => path === 'README.md' || path.startsWith('docs/'));
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');

const fence = /^```(\w*)\n([\s\S]*?)^```$/gm;
const withoutCode = (text: string): string => text.replaceAll(fence, '').replaceAll(/`[^`\n]*`/g, 'code');

const anchorsOf = (text: string): ReadonlySet<string> => {
  const anchors = new Set<string>();
  for (const [, heading = ''] of text.replaceAll(fence, '').matchAll(/^#+ (.+)$/gm)) anchorOf(heading, anchors);
  return anchors;
};

/** What is wrong with a link of the document at `path`; `undefined`: nothing, or it leads out of the repository. */
const faultOf = (path: string, link: string): string | undefined => {
  if (/^[a-z]+:/.test(link)) return undefined;
  const [file = '', anchor] = link.split('#');
  const target = file === '' ? join(root, path) : resolve(root, dirname(path), file);
  if (relative(root, target).startsWith('..') || !existsSync(target)) return `${path}: ${link} does not exist`;
  if (anchor === undefined) return undefined;
  return anchorsOf(readFileSync(target, 'utf8')).has(anchor) ? undefined : `${path}: ${link} has no such heading`;
};

const linksOf = (text: string): readonly string[] =>
  [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link);

describe('links', () => {
  it('lead to files and headings that exist', () => {
    const links = documents.flatMap((path) => linksOf(textOf(path)).map((link) => ({ path, link })));
    expect(links.length).toBeGreaterThan(100);
    expect(links.flatMap(({ path, link }) => faultOf(path, link) ?? [])).toEqual([]);
  });

  it.each([
    ['a missing file', 'docs/missing.md'],
    ['a missing heading', 'docs/README.md#missing'],
    ['a place outside of the repository', '../outside.md'],
  ])('are faults where they lead to %s', (_, link) => expect(faultOf('README.md', link)).toBeDefined());

  it('reach every guide from the index', () => {
    const linked = linksOf(textOf('docs/README.md')).map((link) => join('docs', link));
    expect(guides.filter((path) => path !== 'docs/README.md' && !linked.includes(path))).toEqual([]);
  });
});

describe('the README', () => {
  it('and the package name the same Node, or npx warns where the README says that it is enough', () => {
    const enough = /Node (\d+) or newer is enough/.exec(textOf('README.md'))?.[1];
    expect(packageFile.engines.node).toBe(`>=${enough}`);
  });

  it('has at most 10 KB', () => expect(Buffer.byteLength(textOf('README.md'))).toBeLessThanOrEqual(10_240));
});

describe('two groups with a kind VirtualMachineImage', () => {
  const says = [/\bHarvester\b/, /\bHyperCloud\b/, /only one/, /bullion images -A/];
  it.each([
    ['README.md', /`vmim` for HyperCloud, `vmimage` for Harvester/],
    ['docs/harvester.md', /vmimages` \(in full: `virtualmachineimages\.harvesterhci\.io`\)/],
    ['docs/hypercloud.md', /vmim`\s\(in full: `virtualmachineimages\.hypercloud\.tmaxanc\.com`\)/],
  ])('are told apart by %s', (path, names) => {
    const paragraphs = textOf(path).split('\n\n');
    expect(paragraphs.filter((text) => [...says, names].every((words) => words.test(text)))).toHaveLength(1);
  });
});

describe('the command line of an export to a bucket', () => {
  it.each(['docs/cli.md', 'docs/kubernetes.md'])('says in %s that the bucket must exist', (path) => {
    const lines = textOf(path)
      .split('\n')
      .filter((line) => /^\$ .*bullion export \S+ s3:/.test(line));
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.filter((line) => !/# the bucket must exist/.test(line))).toEqual([]);
  });
});

describe.each(guides)('%s', (path) => {
  const text = textOf(path);

  it('has no table row of more than 120 columns', () => {
    const rows = text.split('\n').filter((line) => line.startsWith('|'));
    expect(rows.filter((row) => Array.from(row).length > 120)).toEqual([]);
  });

  it('says of every block whether a test runs it', () => {
    // `sh` is run, `yaml` is sent to the local cluster (test/flows/documents.test.ts), the others are there to be read.
    const languages = [...text.matchAll(fence)].map(([, language]) => language);
    expect(languages.filter((language) => !['sh', 'yaml', 'console', 'text'].includes(language ?? ''))).toEqual([]);
  });

  it('shows sessions by their prompt', () => {
    const sessions = [...text.matchAll(fence)].filter(([, language]) => language === 'console');
    expect(sessions.filter(([, , block = '']) => !/^(\$ |Status:)/.test(block)).map(([block]) => block)).toEqual([]);
  });
});

describe('blocks that are run', () => {
  /** By the test that reads them from their document. */
  const runners: Readonly<Record<string, string>> = { 'docs/install.md': 'test/flows/uninstall.test.ts' };

  it('are read by a test', () => {
    const found = guides.filter((path) => [...textOf(path).matchAll(fence)].some(([, language]) => language === 'sh'));
    expect(found).toEqual(Object.keys(runners));
    for (const [path, runner] of Object.entries(runners)) expect(textOf(runner)).toContain(path);
  });
});

describe('commands that are only shown', () => {
  const shown = (pattern: RegExp): readonly string[] =>
    documents.flatMap((path) => [...textOf(path).matchAll(pattern)].map(([, found = '']) => found));

  it('are such as bullion takes', () => {
    const lines = shown(/npx bullion ((?!<|--help|\S+\)|[a-z]+ --help|completion)[^`#\n]*)/g);
    expect(lines.length).toBeGreaterThan(20);
    for (const line of lines) {
      const { name, rest } = splitCommand(line.trim().split(/ +/));
      const command = commands.find((known) => known.name === name);
      expect(() => parseCommandLine(command!, rest)).not.toThrow();
    }
  });

  it('are scripts of the package', () => {
    const names = new Set(shown(/npm run (?:-s |--silent )?([a-z][a-z:]*)/g));
    expect([...names].filter((name) => !Object.hasOwn(packageFile.scripts, name))).toEqual([]);
  });

  it('apply folders that exist', () => {
    const paths = shown(/kubectl (?:apply|delete) -[kf] (infra[\w./-]*)/g).map((path) => path.replace(/\.$/, ''));
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    expect(paths).toContain('infra/overlays/production');
  });
});

describe('import arrows', () => {
  it('reach every depth of a folder', () => {
    // A pattern that ends in one star matches the folder's own files alone, and everything below passes.
    const groups = [...textOf('.oxlintrc.json').matchAll(/"(#[^"]+)"/g)].map(([, pattern = '']) => pattern);
    expect(groups.length).toBeGreaterThan(20);
    expect(groups.filter((pattern) => !/\/\*\*$|\.ts$/.test(pattern))).toEqual([]);
  });
});

describe('what users may name', () => {
  const rowsOf = (path: string): readonly string[] =>
    [...textOf(path).matchAll(/^\| `([^`]+)`/gm)].map(([, name = '']) => name);

  it('is in the guide: backends and types of sources', () => {
    const { sourceType } = HarvesterImageSpec.shape;
    expect(rowsOf('docs/harvester.md')).toEqual(expect.arrayContaining([...backendNames, ...sourceType.options]));
  });

  /** Words in backticks. */
  const namesIn = (text: string): readonly string[] => [...text.matchAll(/`([\w-]+)`/g)].map(([, name = '']) => name);

  it('is in the guide of HyperCloud: the fields of an image, and every source', () => {
    const path = 'docs/hypercloud.md';
    expect(new Set(rowsOf(path))).toEqual(new Set(Object.keys(HyperCloudImageSpec.shape)));
    const [row = ''] = /^\| `source` .*$/m.exec(textOf(path)) ?? [];
    expect(new Set(namesIn(row))).toEqual(new Set(['source', ...hyperCloudSources]));
  });

  it('is in the README: every backend', () => {
    const [, list = ''] = /storage backends: ([^.]*)\./.exec(textOf('README.md')) ?? [];
    expect(namesIn(list).toSorted()).toEqual(backendNames.toSorted());
  });

  it.each(backendNames)('has a section about the backend %s, and the glossary has its name', (name) => {
    expect(anchorsOf(textOf('shared/backends/README.md'))).toContain(name);
    expect(textOf('docs/glossary.md')).toMatch(new RegExp(`^\\*\\*Backend\\*\\*: .*\`${name}\``, 'm'));
  });
});

describe('files and folders that documents name', () => {
  const paths = ['', ...folders].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: folder !== '', encoding: 'utf8' }).map(
      (path) => `/${join(folder, path)}`,
    ),
  );
  /** Made by a build; and the example of how a test is called. */
  const notThere = [
    'start.mjs',
    'dist/functions/start.mjs',
    'code-cache.mjs',
    'dist/bullion.krew.yaml',
    'x.test.ts',
    'teams.yaml',
  ];

  /** In backticks or in a diagram: a file by its ending, a folder by the top folder that it begins with. Patterns and URLs are neither. */
  const path = /(?<![\w./:@$~<>*#-])(?:[\w-][\w.-]*\/)*[\w-][\w.-]*\.(?:ts|yaml|md|mjs)\b(?![\w/<*-])/g;
  const folder = new RegExp(`^(?:${folders.join('|')})/[\\w./-]+$`);
  const namedIn = (text: string): readonly string[] =>
    text
      .replaceAll(fence, '')
      .split('\n')
      .flatMap((line) => (line.startsWith('    ') ? [line] : (line.match(/(?<=`)[^`]+(?=`)/g) ?? [])))
      .flatMap((code) => [...(code.match(path) ?? []), ...(folder.test(code) ? [code.replace(/\/$/, '')] : [])]);

  /** From the root, or from `shared`; shorter: in a README below its folder, in a guide anywhere. */
  const isThere = (document: string, name: string): boolean => {
    const home = guides.includes(document) ? '' : `/${dirname(document)}`;
    return paths.some(
      (one) => [`/${name}`, `/shared/${name}`].includes(one) || (one.startsWith(home) && one.endsWith(`/${name}`)),
    );
  };

  it.each(documents)('exist: %s', (document) => {
    const named = namedIn(textOf(document)).filter((name) => !notThere.includes(name));
    expect(named.filter((name) => !isThere(document, name))).toEqual([]);
  });

  it('exist, where a comment names them', () => {
    const code = paths.filter((one) => /^\/(?!test\/documents).*\.ts$/.test(one) && !one.includes('node_modules'));
    const gone = code.flatMap((one) =>
      [...textOf(`.${one}`).matchAll(/^ *(?:\/\/|\/?\*).*/gm)]
        .flatMap(([comment]) => comment.match(path) ?? [])
        .filter((name) => name.endsWith('.ts') && !paths.some((other) => other.endsWith(`/${name}`)))
        .map((name) => `${one}: ${name}`),
    );
    expect(gone).toEqual([]);
  });

  it('are found', () => {
    const text =
      'in `a/b.ts` and `shared/gone/`, not in `<kind>/c.ts`, `*/d.ts` or https://e.example/f.md\n\n    g.ts ─▶ h.ts';
    expect(namedIn(text)).toEqual(['a/b.ts', 'shared/gone', 'g.ts', 'h.ts']);
    expect(namedIn(textOf('docs/architecture.md')).length).toBeGreaterThan(60);
    expect(isThere('docs/architecture.md', 'volume/filling.ts')).toBe(true);
    expect(isThere('shared/golden/README.md', 'volume/filling.ts')).toBe(false);
  });
});
