import { existsSync } from 'node:fs';
import { readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Job,
  type PersistentVolumeClaim,
  configMaps,
  jobs,
  kubeEvents,
  namespaces,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  secrets,
} from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshotContents, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { clusterRoles } from '#local-cluster/controllers/cluster-roles.ts';
import { presentApiServers } from '#test/support/api-server-kind.ts';
import { type ControlPlane, gone, startControlPlane } from '#test/support/control-plane.ts';
import { until } from '#test/support/until.ts';

const namespace = 'default';

describe.each(presentApiServers)('the controllers around the %s API server', (kind) => {
  let plane: ControlPlane;
  beforeAll(async () => {
    plane = await startControlPlane(kind);
  });
  afterAll(async () => {
    await plane.close();
  });

  const aClaim = (name: string, spec: Partial<PersistentVolumeClaim['spec']> & { size?: string } = {}) => {
    const { size = '8Mi', ...rest } = spec;
    return plane.kube.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'local',
        resources: { requests: { storage: size } },
        ...rest,
      },
    });
  };
  const bound = (name: string) =>
    until(plane.kube, persistentVolumeClaims, { namespace, name }, (claim) => claim?.status?.phase === 'Bound');
  const pathOf = async (name: string): Promise<string> => {
    const claim = await bound(name);
    const volume = await plane.kube.get(persistentVolumes, { name: claim?.spec.volumeName ?? '' });
    return plane.controllers().directory.pathOf(volume!.spec.csi!.volumeHandle, volume!.spec.volumeMode!);
  };
  const aSnapshot = (name: string, claim: string, fields: Partial<VolumeSnapshot['spec']> = {}) =>
    plane.kube.create(volumeSnapshots, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { name, namespace },
      spec: { source: { persistentVolumeClaimName: claim }, ...fields },
    });
  const aJob = (name: string, script: string, fields: Partial<Job['spec']> = {}, pod: object = {}) =>
    plane.kube.create(jobs, {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name, namespace },
      spec: {
        backoffLimit: 0,
        ...fields,
        template: {
          spec: {
            restartPolicy: 'Never',
            terminationGracePeriodSeconds: 2,
            containers: [{ name: 'main', image: 'test/sh', args: ['-c', script], ...pod }],
            ...(pod as { podSpec?: object }).podSpec,
          },
        },
      },
    });
  const podsOf = async (job: string) =>
    (await plane.kube.list(pods, { namespace, labelSelector: `batch.kubernetes.io/job-name=${job}` })).items;
  const ended = (name: string, seconds = 20) =>
    until(
      plane.kube,
      jobs,
      { namespace, name },
      (job) => job?.status?.conditions?.some(({ type }) => type === 'Complete' || type === 'Failed') ?? false,
      seconds,
    );
  const verdictOf = (job: Job | undefined) =>
    job?.status?.conditions
      ?.filter(({ type }) => type === 'Complete' || type === 'Failed')
      .map(({ type, reason }) => `${type} ${reason}`);
  const messagesAbout = async (name: string) =>
    (await plane.kube.list(kubeEvents, { namespace })).items
      .filter(({ involvedObject }) => involvedObject.name === name)
      .map(({ message }) => message ?? '');
  const saidAbout = async (name: string, words: string) => {
    for (let tries = 0; tries < 900; tries += 1) {
      if ((await messagesAbout(name)).some((message) => message.includes(words))) return true;
      await sleep(100);
    }
    return messagesAbout(name);
  };

  describe('volumes', () => {
    it('binds a block claim to a sparse file of exactly the requested size', async () => {
      await aClaim('exact', { volumeMode: 'Block', size: '12345678' });
      const facts = await stat(await pathOf('exact'));
      expect([facts.size, facts.blocks]).toEqual([12_345_678, 0]);
    });

    it('sets the default class on a claim without one', async () => {
      const { storageClassName: _, ...spec } = (await aClaim('template')).spec;
      await plane.kube.create(persistentVolumeClaims, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'classless', namespace },
        spec,
      });
      expect((await bound('classless'))?.spec.storageClassName).toBe('local');
    });

    it('waits for the first consumer when the class requires it', async () => {
      await aClaim('later', { storageClassName: 'local-wffc' });
      expect(await saidAbout('later', 'waiting for first consumer')).toBe(true);
      await aJob(
        'consumer',
        'echo hello > /data/file',
        {},
        {
          volumeMounts: [{ name: 'data', mountPath: '/data' }],
          podSpec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'later' } }] },
        },
      );
      expect(verdictOf(await ended('consumer'))).toEqual(['Complete CompletionsReached']);
      expect(await readFile(join(await pathOf('later'), 'file'), 'utf8')).toBe('hello\n');
    });

    it('clones a claim and grows the clone', async () => {
      await aClaim('origin', { volumeMode: 'Block' });
      await writeFile(await pathOf('origin'), 'golden', { flag: 'r+' });
      await aClaim('clone', {
        volumeMode: 'Block',
        size: '16Mi',
        dataSource: { kind: 'PersistentVolumeClaim', name: 'origin' },
      });
      const path = await pathOf('clone');
      expect((await readFile(path)).subarray(0, 6).toString()).toBe('golden');
      expect((await stat(path)).size).toBe(16 * 2 ** 20);
      await plane.kube.mergePatch(
        persistentVolumeClaims,
        { namespace, name: 'clone' },
        {
          spec: { resources: { requests: { storage: '20Mi' } } },
        },
      );
      await until(
        plane.kube,
        persistentVolumeClaims,
        { namespace, name: 'clone' },
        (claim) => claim?.status?.capacity?.['storage'] === '20Mi',
      );
      expect((await stat(path)).size).toBe(20 * 2 ** 20);
    });

    it('restores a snapshot in the state in which it was taken', async () => {
      await aClaim('live');
      await writeFile(join(await pathOf('live'), 'disk.img'), 'before');
      await aSnapshot('snap', 'live');
      const ready = await until(
        plane.kube,
        volumeSnapshots,
        { namespace, name: 'snap' },
        (one) => one?.status?.readyToUse === true,
      );
      expect(ready?.status?.restoreSize).toBe('8Mi');
      await writeFile(join(await pathOf('live'), 'disk.img'), 'after');
      const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' };
      await aClaim('restored', { dataSource });
      expect(await readFile(join(await pathOf('restored'), 'disk.img'), 'utf8')).toBe('before');

      await aClaim('small', { dataSource, size: '4Mi' });
      expect(await saidAbout('small', 'ask for at least 8Mi')).toBe(true);
      await aClaim('plain', { dataSource, storageClassName: 'local-plain' });
      expect(await saidAbout('plain', 'can neither clone nor restore')).toBe(true);
      await plane.kube.delete(volumeSnapshots, { namespace, name: 'snap' });
      await until(plane.kube, volumeSnapshots, { namespace, name: 'snap' }, gone);
      const content = ready?.status?.boundVolumeSnapshotContentName ?? '';
      await until(plane.kube, volumeSnapshotContents, { name: content }, gone);
      expect(await readdir(join(plane.dataDir, 'storage/snapshots'))).toEqual([]);
    });

    it('binds a content that somebody prepared for a snapshot, with its bytes', async () => {
      await aClaim('prepared');
      await writeFile(join(await pathOf('prepared'), 'disk.img'), 'kept');
      const isReady = (one: VolumeSnapshot | undefined): boolean => one?.status?.readyToUse === true;
      await aSnapshot('first', 'prepared');
      const first = await until(plane.kube, volumeSnapshots, { namespace, name: 'first' }, isReady);
      const content = await plane.kube.get(volumeSnapshotContents, {
        name: first?.status?.boundVolumeSnapshotContentName ?? '',
      });
      await plane.kube.create(volumeSnapshotContents, {
        apiVersion: 'snapshot.storage.k8s.io/v1',
        kind: 'VolumeSnapshotContent',
        metadata: { name: 'prepared-content' },
        spec: {
          deletionPolicy: 'Retain',
          driver: content?.spec.driver ?? '',
          source: { snapshotHandle: content?.status?.snapshotHandle ?? '' },
          volumeSnapshotRef: { namespace, name: 'second' },
        },
      });
      await aSnapshot('second', '', { source: { volumeSnapshotContentName: 'prepared-content' } });
      const second = await until(plane.kube, volumeSnapshots, { namespace, name: 'second' }, isReady);
      expect(second?.status).toMatchObject({
        boundVolumeSnapshotContentName: 'prepared-content',
        restoreSize: '8Mi',
      });
      const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'second' };
      await aClaim('of-prepared', { dataSource });
      expect(await readFile(join(await pathOf('of-prepared'), 'disk.img'), 'utf8')).toBe('kept');
      for (const name of ['second', 'first']) await plane.kube.delete(volumeSnapshots, { namespace, name });
      await until(plane.kube, volumeSnapshots, { namespace, name: 'first' }, gone);
      await plane.kube.delete(volumeSnapshotContents, { name: 'prepared-content' });
    });

    it.each([
      [
        'a missing class',
        'classless-snap',
        { volumeSnapshotClassName: 'nope' },
        'snapshot class "nope" not found',
        'local',
      ],
      ['a driver that cannot', 'plain-snap', {}, 'cannot take snapshots', 'local-plain'],
    ])('reports what is wrong with a snapshot of %s', async (...[, name, fields, words, storageClassName]) => {
      await aClaim(name, { storageClassName });
      await bound(name);
      await aSnapshot(name, name, fields);
      const told = await until(
        plane.kube,
        volumeSnapshots,
        { namespace, name },
        (one) => one?.status?.error !== undefined,
      );
      expect(told?.status?.error?.message).toContain(words);
    });

    it('removes the files of a deleted claim', async () => {
      await aClaim('leaving');
      const path = await pathOf('leaving');
      const name = (await bound('leaving'))?.spec.volumeName ?? '';
      await plane.kube.delete(persistentVolumeClaims, { namespace, name: 'leaving' });
      await until(plane.kube, persistentVolumes, { name }, gone);
      expect(existsSync(path)).toBe(false);
    });
  });

  describe('jobs', () => {
    it('reports success with the termination message, and keeps the log', async () => {
      await aJob('fine', 'echo working; printf done > "$BULLION_TERMINATION_LOG"');
      const job = await ended('fine');
      expect([verdictOf(job), job?.status?.succeeded]).toEqual([['Complete CompletionsReached'], 1]);
      const [pod] = await podsOf('fine');
      const state = pod?.status?.containerStatuses?.[0]?.state?.terminated;
      expect(state).toMatchObject({ exitCode: 0, reason: 'Completed', message: 'done' });
      expect(await readFile(plane.controllers().logFile(pod?.metadata.uid ?? '', 'main'), 'utf8')).toBe('working\n');
    });

    it('passes secrets, config maps, fields and mapped paths to the process', async () => {
      const metadata = { name: 'inputs', namespace };
      await plane.kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data: { key: btoa('s3cret') } });
      await plane.kube.create(configMaps, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata,
        data: { 'a.txt': 'config' },
      });
      await aJob(
        'inputs',
        'printf "%s|%s|%s|%s" "$KEY" "$NAMESPACE" "$(cat /etc/inputs/a.txt)" "$(cat "$FILE")" > /dev/termination-log',
        {},
        {
          env: [
            { name: 'KEY', valueFrom: { secretKeyRef: { name: 'inputs', key: 'key' } } },
            { name: 'NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
            { name: 'FILE', value: '/etc/secret/key' },
          ],
          volumeMounts: [
            { name: 'config', mountPath: '/etc/inputs' },
            { name: 'secret', mountPath: '/etc/secret' },
          ],
          podSpec: {
            volumes: [
              { name: 'config', configMap: { name: 'inputs' } },
              { name: 'secret', secret: { secretName: 'inputs' } },
            ],
          },
        },
      );
      expect(verdictOf(await ended('inputs'))).toEqual(['Complete CompletionsReached']);
      const [pod] = await podsOf('inputs');
      expect(pod?.status?.containerStatuses?.[0]?.state?.terminated?.message).toBe('s3cret|default|config|s3cret');
    });

    it('retries with a delay and fails at the limit', async () => {
      await aJob('failing', 'exit 3', { backoffLimit: 2 });
      const job = await ended('failing');
      expect([verdictOf(job), job?.status?.failed]).toEqual([['Failed BackoffLimitExceeded'], 3]);
      const codes = (await podsOf('failing')).map(
        (pod) => pod.status?.containerStatuses?.[0]?.state?.terminated?.exitCode,
      );
      expect(codes).toEqual([3, 3, 3]);
    });

    it('ends a job at its deadline, process included', async () => {
      await aJob(
        'slow',
        'echo $$ > /scratch/pid; sleep 60',
        { activeDeadlineSeconds: 1 },
        {
          volumeMounts: [{ name: 'scratch', mountPath: '/scratch' }],
          podSpec: { volumes: [{ name: 'scratch', emptyDir: {} }] },
        },
      );
      expect(verdictOf(await ended('slow'))).toEqual(['Failed DeadlineExceeded']);
      expect(await podsOf('slow')).toEqual([]);
    });

    it('deletes a finished job after its time to live', async () => {
      await aJob('brief', 'true', { ttlSecondsAfterFinished: 1 });
      await ended('brief');
      await until(plane.kube, jobs, { namespace, name: 'brief' }, gone);
      for (let tries = 0; tries < 900 && (await podsOf('brief')).length > 0; tries += 1) await sleep(100);
      expect(await podsOf('brief')).toEqual([]);
    });

    it('lists the available images when one is unknown', async () => {
      await aJob('unknown', 'true', {}, { image: 'nobody/knows' });
      let [pod] = await podsOf('unknown');
      for (let tries = 0; tries < 900 && pod?.status?.containerStatuses === undefined; tries += 1) {
        await sleep(100);
        [pod] = await podsOf('unknown');
      }
      expect(pod?.status?.containerStatuses?.[0]?.state?.waiting?.reason).toBe('ErrImageNeverPull');
      await plane.kube.delete(jobs, { namespace, name: 'unknown' }, { propagation: 'Background' });
    });

    const aSteadyJob = async (name: string) => {
      await aClaim(name);
      const file = join(await pathOf(name), 'pids');
      await aJob(
        name,
        'echo $$ >> /data/pids; while [ ! -e /data/go ]; do sleep 0.05; done; printf went > /dev/termination-log',
        {},
        {
          volumeMounts: [{ name: 'data', mountPath: '/data' }],
          podSpec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }] },
        },
      );
      for (let tries = 0; tries < 900 && !existsSync(file); tries += 1) await sleep(100);
      return {
        go: join(await pathOf(name), 'go'),
        pids: async () => (await readFile(file, 'utf8')).trim().split('\n').map(Number),
      };
    };
    const isAlive = (pid: number | undefined): boolean => {
      try {
        return pid !== undefined && process.kill(pid, 0);
      } catch {
        return false;
      }
    };

    it('kills the process when the job is deleted', async () => {
      const job = await aSteadyJob('deleted');
      const [pid] = await job.pids();
      expect(isAlive(pid)).toBe(true);
      await plane.kube.delete(jobs, { namespace, name: 'deleted' }, { propagation: 'Foreground' });
      await until(plane.kube, jobs, { namespace, name: 'deleted' }, gone);
      expect([isAlive(pid), await podsOf('deleted')]).toEqual([false, []]);
    });

    it('suspends and resumes', async () => {
      const job = await aSteadyJob('paused');
      await plane.kube.mergePatch(jobs, { namespace, name: 'paused' }, { spec: { suspend: true } });
      for (let tries = 0; tries < 900 && (await podsOf('paused')).length > 0; tries += 1) await sleep(100);
      await writeFile(job.go, '');
      await plane.kube.mergePatch(jobs, { namespace, name: 'paused' }, { spec: { suspend: false } });
      expect(verdictOf(await ended('paused'))).toEqual(['Complete CompletionsReached']);
      expect(await job.pids()).toHaveLength(2);
    });

    it('adopts a running process after the cluster was killed', async () => {
      const job = await aSteadyJob('adopted');
      await plane.restart('abandon');
      await writeFile(job.go, '');
      expect(verdictOf(await ended('adopted'))).toEqual(['Complete CompletionsReached']);
      expect(await job.pids()).toHaveLength(1);
      const [pod] = await podsOf('adopted');
      expect(pod?.status?.containerStatuses?.[0]?.state?.terminated?.message).toBe('went');
    });

    it('treats a process that disappeared as killed', async () => {
      const job = await aSteadyJob('vanished');
      const [pid = 0] = await job.pids();
      process.kill(Number((await readFile(`/proc/${pid}/stat`, 'utf8')).split(' ')[4]) * -1, 'SIGKILL');
      expect(verdictOf(await ended('vanished'))).toEqual(['Failed BackoffLimitExceeded']);
      const [pod] = await podsOf('vanished');
      expect(pod?.status?.containerStatuses?.[0]?.state?.terminated?.exitCode).toBe(137);
    });

    it('stops processes at a shutdown and restarts them without counting a failure', async () => {
      const job = await aSteadyJob('resumed');
      const [pid] = await job.pids();
      const restarted = plane.restart('drain');
      await restarted;
      expect(isAlive(pid)).toBe(false);
      await writeFile(job.go, '');
      const end = await ended('resumed');
      expect([verdictOf(end), end?.status?.failed ?? 0]).toEqual([['Complete CompletionsReached'], 0]);
      expect(await job.pids()).toHaveLength(2);
    });

    it('keeps a claim while a pod uses it', async () => {
      const job = await aSteadyJob('guarded');
      await plane.kube.delete(persistentVolumeClaims, { namespace, name: 'guarded' });
      await sleep(500);
      expect(
        (await plane.kube.get(persistentVolumeClaims, { namespace, name: 'guarded' }))?.metadata.deletionTimestamp,
      ).toBeDefined();
      await writeFile(job.go, '');
      await ended('guarded');
      // A pod that has ended still uses its claim until it is deleted.
      expect((await podsOf('guarded')).map(({ status }) => status?.phase)).toEqual(['Succeeded']);
      await sleep(500);
      expect(
        (await plane.kube.get(persistentVolumeClaims, { namespace, name: 'guarded' }))?.metadata.finalizers,
      ).toContain('kubernetes.io/pvc-protection');
      await plane.kube.delete(jobs, { namespace, name: 'guarded' }, { propagation: 'Foreground' });
      await until(plane.kube, persistentVolumeClaims, { namespace, name: 'guarded' }, gone);
    });

    it('kills a pod that fills a claim beyond its size', async () => {
      await aClaim('tight', { size: '1Mi' });
      await aJob(
        'tight',
        'head -c 8000000 /dev/urandom > /data/big; sync; sleep 30',
        {},
        {
          volumeMounts: [{ name: 'data', mountPath: '/data' }],
          podSpec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'tight' } }] },
        },
      );
      expect(verdictOf(await ended('tight'))).toEqual(['Failed BackoffLimitExceeded']);
      const [pod] = await podsOf('tight');
      expect([pod?.status?.reason, pod?.status?.message]).toEqual([
        'VolumeFull',
        expect.stringContaining('no space left'),
      ]);
    });
  });

  it('set the rules of an aggregated role to those it selects, now and after changes', async () => {
    const rule = (...verbs: string[]) => ({ apiGroups: ['example.com'], resources: ['gears'], verbs });
    const part = (name: string, rules: readonly object[]) =>
      plane.kube.create(clusterRoles, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name, labels: { gear: 'yes' } },
        rules,
      });
    await plane.kube.create(clusterRoles, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'gears' },
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { gear: 'yes' } }] },
      rules: [],
    });
    await part('gears-read', [rule('get'), rule('list')]);
    await part('gears-also-read', [rule('get')]);
    const role = await until(plane.kube, clusterRoles, { name: 'gears' }, (found) => found?.rules?.length === 2);
    expect(role?.rules).toEqual([rule('get'), rule('list')]);
    await plane.kube.delete(clusterRoles, { name: 'gears-read' });
    await until(plane.kube, clusterRoles, { name: 'gears' }, (found) => found?.rules?.length === 1);
  });

  describe('garbage collection', () => {
    const aConfigMap = (name: string, owners: readonly KubeObject[] = [], block = false) =>
      plane.kube.create(configMaps, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: {
          name,
          namespace,
          ownerReferences: owners.map(({ apiVersion, kind, metadata }) => ({
            apiVersion,
            kind,
            name: metadata.name,
            uid: metadata.uid ?? '',
            blockOwnerDeletion: block,
          })),
        },
      });
    const goneMap = (name: string) => until(plane.kube, configMaps, { namespace, name }, gone);

    it('deletes dependents of dependents in the background', async () => {
      const first = await aConfigMap('bg-1');
      const second = await aConfigMap('bg-2', [first]);
      await aConfigMap('bg-3', [second]);
      await plane.kube.delete(configMaps, { namespace, name: 'bg-1' }, { propagation: 'Background' });
      expect(await goneMap('bg-3')).toBeUndefined();
    });

    it('keeps an owner deleted in the foreground until its dependents are deleted', async () => {
      const owner = await aConfigMap('fg-1');
      const dependent = await aConfigMap('fg-2', [owner], true);
      await plane.kube.mergePatch(
        configMaps,
        { namespace, name: 'fg-2' },
        { metadata: { finalizers: ['test.bullion.dev/hold'] } },
      );
      await plane.kube.delete(configMaps, { namespace, name: 'fg-1' }, { propagation: 'Foreground' });
      await until(
        plane.kube,
        configMaps,
        { namespace, name: 'fg-2' },
        (one) => one?.metadata.deletionTimestamp !== undefined,
      );
      await sleep(300);
      expect(await plane.kube.get(configMaps, { namespace, name: 'fg-1' })).toBeDefined();
      await plane.kube.mergePatch(
        configMaps,
        { namespace, name: dependent.metadata.name },
        { metadata: { finalizers: null } },
      );
      await goneMap('fg-1');
    });

    it('keeps dependents with the policy Orphan', async () => {
      const owner = await aConfigMap('or-1');
      await aConfigMap('or-2', [owner]);
      await plane.kube.delete(configMaps, { namespace, name: 'or-1' }, { propagation: 'Orphan' });
      await goneMap('or-1');
      const left = await plane.kube.get(configMaps, { namespace, name: 'or-2' });
      expect(left?.metadata.ownerReferences ?? []).toEqual([]);
    });

    it('deletes an object whose owner was replaced by another of the same name, and removes only the reference from one that has another owner', async () => {
      const first = await aConfigMap('same');
      const other = await aConfigMap('other');
      await plane.kube.delete(configMaps, { namespace, name: 'same' }, { propagation: 'Background' });
      await aConfigMap('same');
      await aConfigMap('of-first', [first]);
      await aConfigMap('of-both', [first, other]);
      await goneMap('of-first');
      const left = await until(
        plane.kube,
        configMaps,
        { namespace, name: 'of-both' },
        (one) => one?.metadata.ownerReferences?.length === 1,
      );
      expect(left?.metadata.ownerReferences?.[0]?.name).toBe('other');
    });

    it('watches custom kinds: a snapshot owned by a config map', async () => {
      const owner = await aConfigMap('snap-owner');
      await aSnapshot('owned-snap', 'nothing');
      await plane.kube.mergePatch(
        volumeSnapshots,
        { namespace, name: 'owned-snap' },
        {
          metadata: {
            ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'snap-owner', uid: owner.metadata.uid }],
          },
        },
      );
      await plane.kube.delete(configMaps, { namespace, name: 'snap-owner' }, { propagation: 'Background' });
      expect(await until(plane.kube, volumeSnapshots, { namespace, name: 'owned-snap' }, gone)).toBeUndefined();
    });
  });

  it('empties a namespace that is deleted', async () => {
    const name = 'passing';
    await plane.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await plane.kube.create(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'content', namespace: name },
    });
    await plane.kube.delete(namespaces, { name });
    await until(plane.kube, namespaces, { name }, gone);
    expect(await plane.kube.get(configMaps, { namespace: name, name: 'content' })).toBeUndefined();
  });

  it('reports no errors', () => {
    expect(plane.reports).toEqual([]);
  });
});
