// Alerts as a PrometheusRule: each has an expression over metrics of `shared/metrics`, and a runbook under `infra/runbooks`. Those with a name
// of CDI's replace its alerts, without their false alarms.
import { type GeneratedManifest, partOf } from '#infra/generate/manifest.ts';
import { systemNamespace } from '#shared/api/names.ts';

export interface Alert {
  readonly name: string;
  readonly expr: string;
  /** How long the expression must hold, in Prometheus' format. */
  readonly for: string;
  readonly severity: 'critical' | 'warning' | 'info';
  readonly summary: string;
}

/** CDI counts restarts of pods; Bullion counts failed attempts. */
const restarting = ['import', 'upload', 'clone'].map((way) => `kubevirt_cdi_${way}_pods_high_restart`);

/** Metrics of CDI's current alerts; the exporter provides those of its earlier ones. */
const recordings = restarting.map((metric) => ({ record: `cluster:${metric}:count`, expr: `sum(${metric})` }));

/** Our exporter: its ServiceMonitor labels it with the name of the Service, which is not unique across namespaces. */
const exporter = `job="metrics", namespace="${systemNamespace}"`;
const virtDefault = 'kubevirt_cdi_storageprofile_info{virtdefault="true"} == 1';

export const alerts: readonly Alert[] = [
  {
    name: 'CDIDataImportCronOutdated',
    expr: 'sum by (ns, cron_name) (kubevirt_cdi_dataimportcron_outdated{pending="false"}) > 0',
    for: '15m',
    severity: 'warning',
    summary:
      'The golden image of {{ $labels.ns }}/{{ $labels.cron_name }} is not the newest, and no import of the newest is running.',
  },
  {
    name: 'BullionPollsFail',
    expr: 'bullion_golden_image_poll_failures >= 3',
    for: '15m',
    severity: 'warning',
    summary: 'The source of {{ $labels.ns }}/{{ $labels.cron_name }} could not be polled {{ $value }} times.',
  },
  {
    name: 'BullionPollOverdue',
    expr: 'time() - bullion_golden_image_next_poll_seconds > 900',
    for: '5m',
    severity: 'critical',
    summary: 'The source of {{ $labels.ns }}/{{ $labels.cron_name }} should have been polled 15 minutes ago.',
  },
  {
    name: 'BullionDisksOutdated',
    expr: 'bullion_outdated_disks > 0',
    for: '30d',
    severity: 'info',
    summary:
      '{{ $value }} disks have held an earlier version than DataSource {{ $labels.ns }}/{{ $labels.data_source }} offers for 30 days.',
  },
  {
    name: 'BullionNotDriven',
    expr: 'sum by (resource) (bullion_overdue_objects) > 0',
    for: '10m',
    severity: 'critical',
    summary: '{{ $value }} {{ $labels.resource }} are past their deadline, and have not been reconciled.',
  },
  {
    name: 'BullionObjectFailed',
    expr: 'sum by (resource, namespace, reason) (bullion_failed_objects) > 0',
    for: '5m',
    severity: 'warning',
    summary: '{{ $value }} {{ $labels.resource }} of {{ $labels.namespace }} failed: {{ $labels.reason }}.',
  },
  {
    name: 'BullionTransfersKeepFailing',
    expr: 'sum by (resource) (bullion_retrying_objects) >= 3',
    for: '15m',
    severity: 'warning',
    summary: '{{ $value }} transfers of {{ $labels.resource }} fail and are retried.',
  },
  {
    name: 'CDIDataVolumeUnusualRestartCount',
    expr: restarting.map((metric) => `sum(${metric}) > 0`).join(' or '),
    for: '5m',
    severity: 'warning',
    summary: 'DataVolumes failed more than three times, and are retried.',
  },
  {
    name: 'BullionAdmissionDown',
    expr: 'bullion_admission_replicas == 0',
    for: '5m',
    severity: 'critical',
    summary: 'Admission reviews are not answered: no image can be created or changed.',
  },
  {
    name: 'BullionMetricsMissing',
    expr: `absent(up{${exporter}} == 1)`,
    for: '10m',
    severity: 'warning',
    summary: 'There are no metrics, and so no other alert can fire.',
  },
  {
    name: 'BullionMetricsIncomplete',
    expr: 'bullion_exporter_readable == 0',
    for: '15m',
    severity: 'warning',
    summary: 'The exporter cannot read {{ $labels.resource }}: alerts about them cannot fire.',
  },
  {
    name: 'CDIStorageProfilesIncomplete',
    expr: 'sum by (storageclass, provisioner) (kubevirt_cdi_storageprofile_info{complete="false"}) > 0',
    for: '5m',
    severity: 'info',
    summary:
      'Nothing is known about the driver of storage class {{ $labels.storageclass }} ({{ $labels.provisioner }}).',
  },
  {
    name: 'CDINoDefaultStorageClass',
    expr: 'kubevirt_cdi_datavolume_pending > 0',
    for: '5m',
    severity: 'warning',
    summary: '{{ $value }} DataVolumes name no storage class, and there is no default one.',
  },
  {
    name: 'CDIMultipleDefaultVirtStorageClasses',
    expr: `count(${virtDefault}) > 1`,
    for: '5m',
    severity: 'warning',
    summary: '{{ $value }} storage classes say that they are the default for virtual machines.',
  },
  {
    name: 'CDIDefaultStorageClassDegraded',
    expr:
      'kubevirt_cdi_storageprofile_info{virtdefault="true", degraded="true"} == 1 or ' +
      `(kubevirt_cdi_storageprofile_info{default="true", degraded="true"} == 1 unless on () ${virtDefault})`,
    for: '5m',
    severity: 'warning',
    summary:
      'The default storage class {{ $labels.storageclass }} cannot clone volumes, or cannot attach a volume to several nodes.',
  },
];

/** Path of an alert's runbook from the root of the repository. */
export const runbookOf = ({ name }: Alert): string => `infra/runbooks/${name}.md`;

const ruleOf = (alert: Alert): object => ({
  alert: alert.name,
  expr: alert.expr,
  for: alert.for,
  labels: { severity: alert.severity, app: 'bullion' },
  annotations: { summary: alert.summary, runbook: runbookOf(alert) },
});

export const buildAlerts = (): GeneratedManifest => ({
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'PrometheusRule',
  metadata: { name: 'bullion', namespace: systemNamespace, labels: partOf('metrics') },
  spec: {
    groups: [
      {
        name: 'bullion',
        rules: [...recordings, ...alerts.map(ruleOf)],
      },
    ],
  },
});
