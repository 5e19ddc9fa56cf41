import { describe, expect, it } from 'vitest';
import type { CronTemplateEntry, HyperConverged, Ssp } from '#shared/api/foreign/boot-sources.ts';
import { commonTemplates } from '#shared/golden/templates/common-images.ts';
import { type BootSourceFacts, decide } from '#shared/golden/templates/template.ts';
import { expand } from '#shared/golden/templates/expand.ts';
import { effectiveTemplates, scheduleOf } from '#shared/golden/templates/operators.ts';
import { sspTemplates } from '#shared/golden/templates/operators.ts';
import { type Template, templateAnnotations } from '#shared/golden/templates/template.ts';

const uid = '6f0e0a4e-8d1f-4a36-8b44-0e8f7f0f6a11';
const hco = (spec: HyperConverged['spec'], status: HyperConverged['status'] = {}): HyperConverged => ({
  apiVersion: 'hco.kubevirt.io/v1beta1',
  kind: 'HyperConverged',
  metadata: { name: 'hco', namespace: 'kubevirt-hyperconverged', uid },
  ...(spec === undefined ? {} : { spec }),
  status,
});
const registry = (url: string) => ({ template: { spec: { source: { registry: { url } }, storage: {} } } });
const entry = (name: string, over: object = {}, annotations: Record<string, string> = {}) => ({
  metadata: { name, annotations },
  spec: { managedDataSource: name, schedule: '0 */12 * * *', ...registry(`docker://r.example/${name}`), ...over },
});
const disabled = { [templateAnnotations.enable]: 'False' };
const listOf = (object: HyperConverged, architectures: readonly string[] = ['amd64']) => {
  const list = effectiveTemplates(object, commonTemplates, architectures);
  if (!('templates' in list)) throw new Error(list.message);
  return list;
};
const namesOf = (templates: readonly Template[]) => templates.map(({ name }) => name);
const fedora = 'fedora-image-cron';
const common = ['centos-stream10-image-cron', 'centos-stream9-image-cron', fedora];
const find = (templates: readonly Template[], name: string): Template => templates.find((one) => one.name === name)!;

describe('the schedule of a cluster', () => {
  it('is what the status says, or else the same for ever, twice a day', () => {
    expect(scheduleOf(hco({}, { dataImportSchedule: '42 7/12 * * *' }))).toBe('42 7/12 * * *');
    expect(scheduleOf(hco({}))).toMatch(/^([1-5]?\d) (\d|1[01])\/12 \* \* \*$/);
    expect(scheduleOf(hco({}))).toBe(scheduleOf(hco({ enableCommonBootImageImport: false })));
  });

  it('is that of every common template, and of no other', () => {
    const object = hco({ dataImportCronTemplates: [entry('own'), entry(fedora, { schedule: '1 1 * * *' })] });
    const { templates } = listOf(object);
    const schedules = Object.fromEntries(templates.map(({ name, spec }) => [name, spec.schedule]));
    expect(schedules).toEqual({
      'centos-stream10-image-cron': scheduleOf(object),
      'centos-stream9-image-cron': scheduleOf(object),
      [fedora]: '1 1 * * *',
      own: '0 */12 * * *',
    });
  });

  it('stands in for an empty one of a changed common template', () => {
    const object = hco({ dataImportCronTemplates: [entry(fedora, { schedule: '' })] });
    expect(find(listOf(object).templates, fedora).spec.schedule).toBe(scheduleOf(object));
  });
});

describe('the list of a HyperConverged', () => {
  it.each<[string, HyperConverged['spec'], readonly string[]]>([
    ['the common ones unless told otherwise', undefined, common],
    ['none where they are switched off', { enableCommonBootImageImport: false }, []],
    ['none where the older gate says so', { featureGates: { enableCommonBootImageImport: false } }, []],
    [
      'the field over the gate',
      { enableCommonBootImageImport: true, featureGates: { enableCommonBootImageImport: false } },
      common,
    ],
    ['none, by the newer field', { workloadSources: { enableCommonBootImageImport: false } }, []],
    [
      'custom ones whatever the switch says',
      { enableCommonBootImageImport: false, dataImportCronTemplates: [entry('b'), entry('a')] },
      ['a', 'b'],
    ],
    [
      'nothing of a built-in name while common ones are off',
      { enableCommonBootImageImport: false, dataImportCronTemplates: [entry(fedora)] },
      [],
    ],
    [
      'not what is disabled',
      { dataImportCronTemplates: [entry(fedora, {}, disabled), entry('own', {}, disabled)] },
      common.filter((name) => name !== fedora),
    ],
    [
      'a disabled one that says nothing else',
      { dataImportCronTemplates: [{ metadata: { name: fedora, annotations: disabled } }] },
      common.filter((name) => name !== fedora),
    ],
  ])('holds %s', (_what, spec, names) => {
    expect(namesOf(listOf(hco(spec)).templates)).toEqual(names);
  });

  it('keeps nothing of a changed common template but what annotations the user left out', () => {
    const changed = entry(fedora, { managedDataSource: 'mine' }, { extra: 'x' });
    const { templates } = listOf(hco({ commonBootImageNamespace: 'boot', dataImportCronTemplates: [changed] }));
    expect(find(templates, fedora)).toMatchObject({
      namespace: undefined,
      labels: {},
      annotations: { extra: 'x', [templateAnnotations.immediateBinding]: 'true' },
      spec: { managedDataSource: 'mine', retentionPolicy: 'None', importsToKeep: 1 },
    });
    expect(find(templates, 'centos-stream9-image-cron').namespace).toBe('boot');
  });

  it('keeps an annotation against immediate binding, and a policy that is written', () => {
    const own = entry('own', { retentionPolicy: 'All' }, { [templateAnnotations.immediateBinding]: 'false' });
    expect(find(listOf(hco({ dataImportCronTemplates: [own] })).templates, 'own')).toMatchObject({
      annotations: { [templateAnnotations.immediateBinding]: 'false' },
      spec: { retentionPolicy: 'All', importsToKeep: 1 },
    });
  });

  it.each([
    [[entry('a'), entry('a')], 'a DataImportCronTable is already defined'],
    [[{ metadata: { name: 'a' } }], 'dataImportCronTemplate spec is empty for an enabled DataImportCronTemplate'],
  ])('is none where it contradicts itself', (entries, message) => {
    const list = effectiveTemplates(hco({ dataImportCronTemplates: entries }), commonTemplates, ['amd64']);
    expect(list).toMatchObject({ message: expect.stringContaining(message) as string });
  });
});

describe('the list of an SSP', () => {
  const ssp = (spec: object): Ssp => ({ apiVersion: '', kind: 'SSP', metadata: { name: 'ssp' }, spec });
  const a = [entry('a')];

  it.each<[string, object]>([
    ['in its own shape', { commonTemplates: { dataImportCronTemplates: a } }],
    ['as its design writes it', { DataImportCronTemplates: a }],
    ['without the capital', { dataImportCronTemplates: a }],
    ['in any case', { commonTemplates: { dataimportcrontemplates: a } }],
  ])('is read %s', (_how, spec) => {
    const read = sspTemplates(ssp(spec));
    expect('templates' in read ? read.templates.map(({ name }) => name) : read).toEqual(['a']);
  });

  it.each<[string, object]>([
    ['spec.dataImportCronTemplate', { dataImportCronTemplate: a }],
    ['spec.commonTemplates.dataImportCrons', { commonTemplates: { dataImportCrons: a } }],
    ['spec.commonTemplates.cronTemplates', { commonTemplates: { dataImportCronTemplates: a, cronTemplates: a } }],
  ])('is not left out silently where it is called %s', (field, spec) => {
    expect(sspTemplates(ssp(spec))).toEqual({
      reason: 'InvalidTemplate',
      message: `${field} is not a known field: write dataImportCronTemplates`,
    });
  });

  it.each<[string, object]>([
    ['spec.dataImportCrons', { dataImportCrons: a }],
    ['spec.workloadSources.cronTemplates', { workloadSources: { cronTemplates: a } }],
  ])('nor that of a HyperConverged at %s', (field, spec) => {
    const list = effectiveTemplates(hco(spec as never), commonTemplates, ['amd64']);
    expect(list).toMatchObject({ reason: 'InvalidTemplate', message: expect.stringContaining(field) as string });
  });
});

describe('several architectures', () => {
  const on = (...entries: CronTemplateEntry[]) =>
    hco({ enableMultiArchBootImageImport: true, dataImportCronTemplates: entries });
  const archesOf = (template: Template) => template.annotations[templateAnnotations.architectures];

  it('are those that machines run on, and without any the template stays out', () => {
    const own = entry('own', {}, { [templateAnnotations.architectures]: 'riscv64' });
    const { templates, problems } = listOf(on(own), ['arm64', 'amd64']);
    expect(archesOf(find(templates, fedora))).toBe('arm64,amd64');
    expect(namesOf(templates)).toEqual(common);
    expect(problems).toMatchObject([{ reason: 'UnsupportedArchitectures' }]);
  });

  it('of a changed image are the user’s to say, of the same image those that are known', () => {
    const ours = { [templateAnnotations.architectures]: 's390x,amd64' };
    const theirs = find(commonTemplates, fedora).spec;
    expect(archesOf(find(listOf(on(entry(fedora, {}, ours))).templates, fedora))).toBe('amd64');
    expect(archesOf(find(listOf(on(entry(fedora))).templates, fedora))).toBe(undefined);
    const same = { metadata: { name: fedora, annotations: ours }, spec: { ...entry(fedora).spec, ...theirs } };
    expect(archesOf(find(listOf(on(same), ['arm64', 'amd64']).templates, fedora))).toBe('arm64,amd64');
  });

  it('are nobody’s business where they are switched off', () => {
    expect(listOf(hco({})).templates.map(archesOf)).toEqual([undefined, undefined, undefined]);
  });

  const cluster = { namespace: 'golden', architectures: ['arm64', 'amd64'], isMultiArch: true };
  it('have a cron and a DataSource each, and one that stands for the default', () => {
    const { crons, sources } = expand(listOf(on(), ['amd64', 'arm64']).templates, cluster);
    const cron = crons.find(({ name }) => name === 'fedora-image-cron-arm64');
    expect(cron).toMatchObject({
      namespace: 'golden',
      labels: {
        'template.kubevirt.io/architecture': 'arm64',
        'cdi.kubevirt.io/storage.import.datasource-name': 'fedora',
      },
      spec: {
        managedDataSource: 'fedora-arm64',
        template: { spec: { source: { registry: { platform: { architecture: 'arm64' } } } } },
      },
    });
    expect(cron?.annotations).not.toHaveProperty(templateAnnotations.architectures);
    expect(sources.filter(({ name }) => name.startsWith('fedora'))).toEqual([
      { name: 'fedora-arm64', labels: { 'template.kubevirt.io/architecture': 'arm64' }, formerVolume: 'fedora' },
      { name: 'fedora-amd64', labels: { 'template.kubevirt.io/architecture': 'amd64' } },
      { name: 'fedora', labels: {}, pointsTo: 'fedora-arm64' },
    ]);
    // Windows has no template for arm64.
    expect(sources.find(({ name }) => name === 'win11')?.pointsTo).toBe('win11-amd64');
  });

  it('of a custom template have a pointer too; a template without a word is for the default one', () => {
    const known = entry('x', { managedDataSource: 'ubuntu' });
    const own = entry('own', {}, { [templateAnnotations.architectures]: 'amd64' });
    const plain = entry('plain');
    const { crons, sources } = expand(
      listOf(on(known, own, plain), ['amd64', 'arm64']).templates.filter(({ name }) => !common.includes(name)),
      cluster,
    );
    expect(crons.map(({ name, spec }) => [name, spec.managedDataSource])).toEqual([
      ['own-amd64', 'own-amd64'],
      ['plain', 'plain'],
      ['x', 'ubuntu-arm64'],
    ]);
    expect(sources.find(({ name }) => name === 'own')?.pointsTo).toBe('own-amd64');
  });
});

describe('one architecture', () => {
  const cluster = { namespace: 'golden', architectures: ['s390x', 'amd64'], isMultiArch: false };
  it('has a DataSource for whatever common templates refer to, whether or not it is fed', () => {
    const { sources } = expand([], cluster);
    expect(sources.map(({ name }) => name)).toEqual(['centos-stream9', 'fedora', 'rhel8', 'rhel9', 'ubuntu']);
  });

  it('lets one template manage a DataSource, and says which does not', () => {
    const ssp: Ssp = {
      apiVersion: 'ssp.kubevirt.io/v1beta3',
      kind: 'SSP',
      metadata: { name: 'ssp', namespace: 'kubevirt', uid },
      spec: {
        commonTemplates: {
          dataImportCronTemplates: [entry('a', { managedDataSource: 'd' }), entry('b', { managedDataSource: 'd' })],
        },
      },
    };
    const list = sspTemplates(ssp);
    const { crons, problems } = expand('templates' in list ? list.templates : [], cluster);
    expect(crons.map(({ name }) => name)).toEqual(['a']);
    expect(problems).toMatchObject([{ message: expect.stringContaining('template b is left out') }]);
  });

  it.each<[string, Ssp['spec'], string]>([
    ['a nameless template', { commonTemplates: { dataImportCronTemplates: [{}] } }, 'missing name'],
    ['no architectures', { enableMultipleArchitectures: true }, 'needs architectures'],
    [
      'an unknown architecture',
      { enableMultipleArchitectures: true, cluster: { workloadArchitectures: ['vax'] } },
      'unknown architecture vax',
    ],
  ])('of an SSP: refuses %s', (_what, spec, message) => {
    const ssp = { apiVersion: '', kind: 'SSP', metadata: { name: 'ssp' }, ...(spec === undefined ? {} : { spec }) };
    expect(sspTemplates(ssp)).toMatchObject({ message: expect.stringContaining(message) as string });
  });
});

describe('whether a boot source keeps itself fresh', () => {
  const facts: BootSourceFacts = {
    hasTemplate: true,
    exists: false,
    hasLabel: false,
    hasVolume: false,
    keepsFormerVolume: false,
  };
  it.each<[string, Partial<BootSourceFacts>, boolean]>([
    ['no template', { hasTemplate: false }, false],
    ['no template, though labelled', { hasTemplate: false, exists: true, hasLabel: true }, false],
    ['nothing there', {}, true],
    ['a golden volume there', { hasVolume: true }, false],
    ['a DataSource without label or volume', { exists: true }, true],
    ['a DataSource with a volume', { exists: true, hasVolume: true }, false],
    ['a labelled DataSource with a volume', { exists: true, hasLabel: true, hasVolume: true }, true],
    ['a volume of the time before architectures', { keepsFormerVolume: true }, false],
  ])('%s: %o → %s', (_what, over, isAutomatic) => {
    expect(decide({ ...facts, ...over }).isAutomatic).toBe(isAutomatic);
  });
});
