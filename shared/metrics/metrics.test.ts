import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { type MetricsDeps, collect } from '#shared/metrics/collect.ts';
import { type Metric, gauge, toText } from '#shared/metrics/metric.ts';
import { Denied } from '#shared/runtime/errors.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import { createMetricsWorld } from '#test/support/metrics-world.ts';

let deps: MetricsDeps & { readonly kube: MemoryKube };
beforeEach(() => {
  deps = createMetricsWorld();
});

const samples = (metrics: readonly Metric[], name: string) =>
  metrics.filter((metric) => metric.name === name).map(({ labels, value }) => [Object.values(labels).join(' '), value]);
const ours = 'virtualmachineimages.hypercloud.tmaxanc.com';

describe('metrics', () => {
  it('count objects by phase, waiting and failed ones by reason', async () => {
    const metrics = await collect(deps);
    expect(samples(metrics, 'bullion_objects')).toEqual(
      expect.arrayContaining([
        [`${ours} Available`, 1],
        [`${ours} Downloading`, 1],
        [`${ours} Failed`, 1],
      ]),
    );
    expect(samples(metrics, 'bullion_failed_objects')).toEqual([[`${ours} default ChecksumMismatch`, 1]]);
    expect(Object.fromEntries(samples(metrics, 'bullion_failed_attempts'))).toEqual({
      [`${ours} Overcome`]: 2,
      [`${ours} NetworkFailed`]: 1,
      [`${ours} ChecksumMismatch`]: 4,
    });
    expect(samples(metrics, 'bullion_unsettled_objects')).toContainEqual([`${ours} Downloading`, 1]);
    expect(samples(metrics, 'bullion_retrying_objects')).toContainEqual([ours, 1]);
  });

  it('report what is past its deadline, after the grace period of cron-tick', async () => {
    expect(samples(await collect(deps), 'bullion_overdue_objects')).toContainEqual([ours, 1]);
    const earlier = { ...deps, now: () => deps.now() - 8 * 60_000 };
    expect(samples(await collect(earlier), 'bullion_overdue_objects')).toContainEqual([ours, 0]);
  });

  it('report duration, size and progress of each image', async () => {
    const metrics = await collect(deps);
    expect(samples(metrics, 'bullion_import_seconds')).toEqual([[`${ours} default done`, 90]]);
    expect(samples(metrics, 'bullion_image_bytes')).toEqual([[`${ours} default done`, 300]]);
    expect(samples(metrics, 'bullion_image_virtual_bytes')).toEqual([[`${ours} default done`, 2000]]);
    expect(samples(metrics, 'bullion_transfer_received_bytes')).toEqual([[`${ours} default running`, 120]]);
    expect(samples(metrics, 'bullion_import_progress_percent')).toContainEqual([`${ours} default running`, 40]);
  });

  it('report golden images: outdated ones, polls, versions of every form', async () => {
    const metrics = await collect(deps);
    expect(samples(metrics, 'kubevirt_cdi_dataimportcron_outdated')).toEqual([['golden fedora golden false', 1]]);
    expect(samples(metrics, 'bullion_golden_image_poll_failures')).toEqual([['golden fedora', 4]]);
    expect(samples(metrics, 'bullion_golden_image_versions')).toEqual([
      ['golden fedora', 2],
      ['channels debian', 2],
    ]);
  });

  it('tell of disks that hold an earlier version, by policy and channel', async () => {
    const of = async () => samples(await collect(deps), 'bullion_outdated_disks');
    expect(await of()).toEqual([['channels debian debian stable', 1]]);
    deps.kube.edit(dataSourceKind.type, { namespace: 'channels', name: 'debian' }, ({ spec }) => {
      spec.source = { pvc: { namespace: 'channels', name: 'debian-1' } };
    });
    expect(await of()).toEqual([['channels debian debian stable', 1]]);
    await deps.kube.delete(dataVolumes, { namespace: 'channels', name: 'new' });
    await deps.kube.delete(persistentVolumeClaims, { namespace: 'channels', name: 'new' });
    expect(await of()).toEqual([['channels debian debian stable', 0]]);
  });

  it('report storage classes as the original does, and objects that wait for a default class', async () => {
    const [info] = (await collect(deps)).filter(({ name }) => name === 'kubevirt_cdi_storageprofile_info');
    expect(info).toMatchObject({
      value: 1,
      labels: { storageclass: 'local', complete: 'true', default: 'false', smartclone: 'true', degraded: 'true' },
    });
    expect(samples(await collect(deps), 'kubevirt_cdi_datavolume_pending')).toEqual([['', 1]]);
    deps.kube.edit(storageClasses, { name: 'local' }, ({ metadata }) => {
      metadata.annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    });
    expect(samples(await collect(deps), 'kubevirt_cdi_datavolume_pending')).toEqual([['', 0]]);
  });

  it('count data volumes with an unusual number of failures, by the names that the original gave its pods', async () => {
    const volume = (name: string, spec: object, restartCount: number, phase = 'Pending') =>
      deps.kube.seed(dataVolumes, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataVolume',
        metadata: { namespace: 'default', name },
        spec,
        status: { phase, restartCount },
      } as never);
    volume('fetched', { source: { http: { url: 'http://a/b' } }, pvc: {} }, 4, 'ImportInProgress');
    volume('twice', { source: { registry: { url: 'docker://a/b' } }, pvc: {} }, 4, 'Failed');
    volume('usual', { source: { http: { url: 'http://a/b' } }, pvc: {} }, 3, 'ImportInProgress');
    volume('made-it', { source: { http: { url: 'http://a/b' } }, pvc: {} }, 9, 'Succeeded');
    volume('sent', { source: { upload: {} }, pvc: {} }, 5, 'UploadReady');
    volume('cloned', { source: { pvc: { namespace: 'a', name: 'b' } }, pvc: {} }, 4, 'CloneInProgress');
    volume('of-golden', { sourceRef: { kind: 'DataSource', name: 'fedora' }, storage: {} }, 4, 'Failed');
    const metrics = await collect(deps);
    const counts = ['import', 'upload', 'clone'].map((way) =>
      samples(metrics, `kubevirt_cdi_${way}_pods_high_restart`),
    );
    expect(counts).toEqual([[['', 2]], [['', 1]], [['', 2]]]);
  });

  it('omit one resource that may not be read, report it, and keep all others', async () => {
    deps.kube.failNext({ verb: 'list', resource: 'dataimportcrons' }, { error: new Denied('no'), when: 'before' });
    const metrics = await collect(deps);
    expect(samples(metrics, 'bullion_exporter_readable')).toContainEqual(['dataimportcrons.cdi.kubevirt.io', 0]);
    expect(samples(metrics, 'bullion_exporter_readable')).toContainEqual([ours, 1]);
    expect(samples(metrics, 'bullion_golden_image_poll_failures')).toEqual([]);
    expect(samples(metrics, 'bullion_import_seconds')).toHaveLength(1);
  });
});

describe('the exposition format', () => {
  it('has one HELP line for all samples of a metric, from whatever source', () => {
    const [a, b] = [gauge('a', 'first'), gauge('b', 'second')];
    expect(toText([a(1, { x: '1' }), b(2), a(3, { x: '2' })])).toBe(
      '# HELP a first\n# TYPE a gauge\na{x="1"} 1\na{x="2"} 3\n# HELP b second\n# TYPE b gauge\nb 2\n',
    );
  });

  it('escapes any label value to one line, and can be parsed again', () => {
    expect.hasAssertions();
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const line = toText([gauge('m', 'h')(1, { l: text })])
          .split('\n')
          .slice(2, -1)
          .join('\n');
        const match = /^m\{l="((?:[^"\\\n]|\\["\\n])*)"\} 1$/.exec(line);
        const read = match?.[1]?.replaceAll(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));
        expect(read).toBe(text);
      }),
    );
  });
});
