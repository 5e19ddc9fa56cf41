// Alerts and dashboard compared with the exporter: every metric they use is provided, every alert has its runbook, and Prometheus itself accepts them.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { alerts, buildAlerts, runbookOf } from '#infra/generate/alerts.ts';
import { buildDashboard, panels } from '#infra/generate/dashboard.ts';
import { collect } from '#shared/metrics/collect.ts';
import { toText } from '#shared/metrics/metric.ts';
import { createMetricsWorld } from '#test/support/metrics-world.ts';
import { findPromtool } from '#test/support/promtool.ts';

const root = join(import.meta.dirname, '../..');
const metrics = await collect(createMetricsWorld());
const given = new Set(metrics.map(({ name }) => name));
const namedIn = (expr: string): readonly string[] =>
  [...expr.matchAll(/\b(?:bullion|kubevirt)_\w+/g)].map(([name]) => name);

describe('alerts', () => {
  it.each(alerts)('$name uses metrics that the exporter provides, with labels that they have', ({ expr, summary }) => {
    const names = namedIn(expr);
    // Prometheus' own metric for a successful scrape.
    expect(names.length > 0 || expr.includes('up{')).toBe(true);
    for (const name of names) expect(given).toContain(name);
    const labels = [...`${expr} ${summary}`.matchAll(/by \(([^)]*)\)|\$labels\.(\w+)/g)].flatMap(([, list, one]) =>
      (list ?? one ?? '').split(', '),
    );
    const known = metrics.filter(({ name }) => names.includes(name)).flatMap((metric) => Object.keys(metric.labels));
    for (const label of labels) expect(known).toContain(label);
  });

  it.each(alerts)('$name has a runbook with its meaning, the diagnosis and the remedy', (alert) => {
    const text = readFileSync(join(root, runbookOf(alert)), 'utf8');
    expect(text).toMatch(new RegExp(`^# ${alert.name}\n`));
    for (const heading of ['## Meaning', '## Diagnosis', '## Mitigation']) expect(text).toContain(heading);
    for (const name of namedIn(text)) expect(given).toContain(name);
  });

  it('of CDI find the metrics under the names they use', () => {
    const { groups } = buildAlerts()['spec'] as {
      readonly groups: readonly { readonly rules: readonly { readonly record?: string; readonly expr: string }[] }[];
    };
    const recorded = groups.flatMap(({ rules }) => rules).filter(({ record }) => record !== undefined);
    expect(recorded.map(({ record }) => record)).toEqual(
      ['import', 'upload', 'clone'].map((way) => `cluster:kubevirt_cdi_${way}_pods_high_restart:count`),
    );
    for (const name of recorded.flatMap(({ expr }) => namedIn(expr))) expect(given).toContain(name);
  });

  it('have a runbook each, and there is no runbook without an alert', () => {
    const files = readdirSync(join(root, 'infra/runbooks')).filter((file) => file !== 'README.md');
    expect(files.toSorted()).toEqual(alerts.map(({ name }) => `${name}.md`).toSorted());
  });
});

describe('the dashboard', () => {
  it('shows only metrics that the exporter provides, and shows each of them', () => {
    const shown = panels.flatMap(({ queries }) => queries.flatMap(([expr]) => namedIn(expr)));
    for (const name of shown) expect(given).toContain(name);
    const elsewhere = new Set([...shown, ...alerts.flatMap(({ expr }) => namedIn(expr))]);
    expect([...given].filter((name) => !elsewhere.has(name))).toEqual([]);
  });

  it('places its panels within 24 columns without overlap', () => {
    const { data } = buildDashboard() as unknown as { readonly data: Readonly<Record<string, string>> };
    interface Placed {
      readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    }
    const { panels: placed } = JSON.parse(data['bullion.json']!) as { readonly panels: readonly Placed[] };
    const cells = placed.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...placed.map(({ gridPos: { x, w } }) => x + w))).toBe(24);
  });
});

const promtool = findPromtool();

describe.skipIf(promtool === undefined)('Prometheus', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'bullion-rules-'));
    writeFileSync(join(folder, 'rules.yaml'), stringify(buildAlerts()['spec']));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const run = (args: readonly string[], input = '') => {
    const { status, stdout, stderr } = spawnSync(promtool!, args, { cwd: folder, input, encoding: 'utf8' });
    return { status, said: `${stdout}${stderr}` };
  };

  it('parses what the exporter provides', () => {
    const { said } = run(['check', 'metrics'], toText(metrics));
    // Conventions of promtool: names of the original end with the suffix that is reserved for counters, or lack a unit. Only the syntax is checked here.
    expect(said).not.toMatch(/error while linting|parse|text format/i);
  });

  it('accepts the rules', () => {
    expect(run(['check', 'rules', 'rules.yaml'])).toMatchObject({ status: 0 });
  });

  interface Case {
    readonly what: string;
    readonly alert: string;
    /** Values a minute apart, from the first one. */
    readonly series: Readonly<Record<string, string>>;
    readonly at: string;
    readonly fires: readonly Readonly<Record<string, string>>[];
  }
  const cron = 'ns="golden", namespace="golden", cron_name="fedora"';
  const profile = (name: string, more: string) =>
    `kubevirt_cdi_storageprofile_info{storageclass="${name}", provisioner="p", complete="true", ${more}}`;
  const cases: readonly Case[] = [
    {
      what: 'an import that takes two hours is not outdated',
      alert: 'CDIDataImportCronOutdated',
      series: { [`kubevirt_cdi_dataimportcron_outdated{${cron}, pending="false"}`]: '1 0x120' },
      at: '2h',
      fires: [],
    },
    {
      what: 'nor is one that waits for a storage class',
      alert: 'CDIDataImportCronOutdated',
      series: { [`kubevirt_cdi_dataimportcron_outdated{${cron}, pending="true"}`]: '1x60' },
      at: '1h',
      fires: [],
    },
    {
      what: 'one that failed is',
      alert: 'CDIDataImportCronOutdated',
      series: { [`kubevirt_cdi_dataimportcron_outdated{${cron}, pending="false"}`]: '1x60' },
      at: '20m',
      fires: [{ ns: 'golden', cron_name: 'fedora' }],
    },
    {
      what: 'a poll that is not made is overdue',
      alert: 'BullionPollOverdue',
      series: { 'bullion_golden_image_next_poll_seconds{ns="golden", cron_name="fedora"}': '60x60' },
      at: '30m',
      fires: [{ ns: 'golden', cron_name: 'fedora' }],
    },
    {
      what: 'no objects past their deadline',
      alert: 'BullionNotDriven',
      series: { 'bullion_overdue_objects{resource="a"}': '0x60' },
      at: '30m',
      fires: [],
    },
    {
      what: 'a missing exporter is reported',
      alert: 'BullionMetricsMissing',
      series: {
        'up{job="metrics", namespace="bullion-system"}': '1x5 0x60',
        'up{job="metrics", namespace="openshift-etcd-operator"}': '1x65',
      },
      at: '30m',
      fires: [{}],
    },
    {
      what: 'a default class of the cluster is not judged where virtual machines have their own',
      alert: 'CDIDefaultStorageClassDegraded',
      series: {
        [profile('a', 'default="true", virtdefault="false", degraded="true"')]: '1x60',
        [profile('b', 'default="false", virtdefault="true", degraded="false"')]: '1x60',
      },
      at: '30m',
      fires: [],
    },
    {
      what: 'it is where they have none',
      alert: 'CDIDefaultStorageClassDegraded',
      series: { [profile('a', 'default="true", virtdefault="false", degraded="true"')]: '1x60' },
      at: '30m',
      fires: [
        {
          storageclass: 'a',
          provisioner: 'p',
          complete: 'true',
          default: 'true',
          virtdefault: 'false',
          degraded: 'true',
        },
      ],
    },
    {
      what: 'failing uploads are reported although imports succeed',
      alert: 'CDIDataVolumeUnusualRestartCount',
      series: { kubevirt_cdi_import_pods_high_restart: '0x60', kubevirt_cdi_upload_pods_high_restart: '2x60' },
      at: '10m',
      fires: [{}],
    },
    {
      what: 'admission that is down for a moment does not fire',
      alert: 'BullionAdmissionDown',
      series: { bullion_admission_replicas: '0x2 2x60' },
      at: '10m',
      fires: [],
    },
  ];

  it.each(cases)('$alert: $what', ({ alert, series, at, fires }) => {
    const { severity, summary } = alerts.find(({ name }) => name === alert)!;
    const expand = (labels: Readonly<Record<string, string>>) =>
      summary.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, label: string) => labels[label] ?? '');
    const test = {
      rule_files: ['rules.yaml'],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
          alert_rule_test: [
            {
              eval_time: at,
              alertname: alert,
              exp_alerts: fires.map((labels) => ({
                exp_labels: { severity, app: 'bullion', ...labels },
                exp_annotations: { summary: expand(labels), runbook: `infra/runbooks/${alert}.md` },
              })),
            },
          ],
        },
      ],
    };
    writeFileSync(join(folder, 'test.yaml'), stringify(test, { lineWidth: 0 }));
    const { status, said } = run(['test', 'rules', 'test.yaml']);
    expect(said).toContain('SUCCESS');
    expect(status).toBe(0);
  });
});
