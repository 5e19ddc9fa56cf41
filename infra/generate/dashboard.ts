// A Grafana dashboard for the metrics of `shared/metrics`, as a ConfigMap that Grafana's sidecar finds by its label.
import { type GeneratedManifest, partOf } from '#infra/generate/manifest.ts';
import { systemNamespace } from '#shared/api/names.ts';

export interface Panel {
  readonly title: string;
  readonly type: 'stat' | 'timeseries' | 'table';
  /** Expression and legend. */
  readonly queries: readonly (readonly [string, string])[];
  /** Grafana's name of the unit. */
  readonly unit?: string;
}

export const panels: readonly Panel[] = [
  { title: 'Queue', type: 'stat', queries: [['sum(bullion_unsettled_objects) or vector(0)', 'unsettled']] },
  { title: 'Failed', type: 'stat', queries: [['sum(bullion_failed_objects) or vector(0)', 'failed']] },
  {
    title: 'Golden images that are outdated',
    type: 'stat',
    queries: [['sum(kubevirt_cdi_dataimportcron_outdated{pending="false"}) or vector(0)', 'outdated']],
  },
  { title: 'Admission', type: 'stat', queries: [['bullion_admission_replicas', 'replicas']] },
  {
    title: 'Objects by phase',
    type: 'timeseries',
    queries: [['sum by (resource, phase) (bullion_objects)', '{{resource}} {{phase}}']],
  },
  {
    title: 'Reasons for waiting',
    type: 'timeseries',
    queries: [['sum by (resource, reason) (bullion_unsettled_objects)', '{{resource}} {{reason}}']],
  },
  {
    title: 'Running transfers',
    type: 'timeseries',
    unit: 'Bps',
    queries: [['rate(bullion_transfer_received_bytes[2m])', '{{namespace}}/{{name}}']],
  },
  {
    title: 'Progress',
    type: 'timeseries',
    unit: 'percent',
    queries: [['bullion_import_progress_percent', '{{namespace}}/{{name}}']],
  },
  {
    title: 'Time from creation to use',
    type: 'table',
    unit: 's',
    queries: [['sort_desc(bullion_import_seconds)', '{{namespace}}/{{name}}']],
  },
  {
    title: 'Size of images',
    type: 'table',
    unit: 'bytes',
    queries: [
      ['bullion_image_bytes', '{{namespace}}/{{name}} file'],
      ['bullion_image_virtual_bytes', '{{namespace}}/{{name}} disk'],
    ],
  },
  {
    title: 'Attempts that failed',
    type: 'timeseries',
    queries: [
      ['sum by (resource, reason) (bullion_failed_attempts)', '{{resource}} {{reason}}'],
      ['sum by (resource) (bullion_retrying_objects)', '{{resource}} retried'],
      ['kubevirt_cdi_import_pods_high_restart', 'imports that keep failing'],
      ['kubevirt_cdi_upload_pods_high_restart', 'uploads that keep failing'],
      ['kubevirt_cdi_clone_pods_high_restart', 'clones that keep failing'],
    ],
  },
  {
    title: 'Objects that are not reconciled',
    type: 'timeseries',
    queries: [['sum by (resource) (bullion_overdue_objects)', '{{resource}}']],
  },
  {
    title: 'Golden images: versions kept',
    type: 'timeseries',
    queries: [['bullion_golden_image_versions', '{{ns}}/{{cron_name}}']],
  },
  {
    title: 'Golden images: polls that failed in a row',
    type: 'timeseries',
    queries: [['bullion_golden_image_poll_failures', '{{ns}}/{{cron_name}}']],
  },
  {
    title: 'Golden images: events within an hour',
    type: 'timeseries',
    queries: [['sum by (event) (delta(bullion_golden_image_events[1h]))', '{{event}}']],
  },
  {
    title: 'Golden images: age of the version in use',
    type: 'table',
    unit: 's',
    queries: [['time() - (bullion_golden_image_last_import_seconds > 0)', '{{ns}}/{{cron_name}}']],
  },
  {
    title: 'Golden images: since the last poll',
    type: 'table',
    unit: 's',
    queries: [['time() - (bullion_golden_image_last_poll_seconds > 0)', '{{ns}}/{{cron_name}}']],
  },
];

/** Of the 24 columns of a dashboard. */
const sizes = { stat: { w: 6, h: 4 }, timeseries: { w: 12, h: 8 }, table: { w: 12, h: 8 } } as const;

const datasource = { type: 'prometheus', uid: '${datasource}' };

/** Panels are placed side by side while they fit. */
const layOut = (): readonly object[] => {
  let [x, y, rowHeight] = [0, 0, 0];
  return panels.map(({ title, type, queries, unit = 'short' }, index) => {
    const { w, h } = sizes[type];
    if (x + w > 24) [x, y, rowHeight] = [0, y + rowHeight, 0];
    const gridPos = { x, y, w, h };
    x += w;
    rowHeight = Math.max(rowHeight, h);
    return {
      id: index + 1,
      title,
      type,
      gridPos,
      datasource,
      fieldConfig: { defaults: { unit }, overrides: [] },
      targets: queries.map(([expr, legendFormat], query) => ({
        refId: String.fromCodePoint(65 + query),
        datasource,
        expr,
        legendFormat,
        instant: type !== 'timeseries',
      })),
    };
  });
};

export const buildDashboard = (): GeneratedManifest => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'bullion-dashboard',
    namespace: systemNamespace,
    labels: { ...partOf('metrics'), grafana_dashboard: '1' },
  },
  data: {
    'bullion.json': `${JSON.stringify(
      {
        uid: 'bullion',
        title: 'Bullion: images',
        schemaVersion: 39,
        refresh: '30s',
        time: { from: 'now-6h', to: 'now' },
        templating: { list: [{ name: 'datasource', type: 'datasource', query: 'prometheus' }] },
        panels: layOut(),
      },
      undefined,
      2,
    )}\n`,
  },
});
