import { describe, expect, it } from 'vitest';
import type { DataImportCron } from '#shared/api/cdi/data-import-cron.ts';
import { cronTemplateRules } from '#shared/resources/data-import-cron/rules.ts';
import { faultsOf } from '#shared/resources/rule.ts';

const source = { registry: { url: 'docker://quay.io/containerdisks/fedora:latest' } };
const storage = { resources: { requests: { storage: '10Gi' } } };
const aCron = (template: Record<string, unknown> = {}, name = 'fedora'): DataImportCron =>
  ({
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataImportCron',
    metadata: { name, namespace: 'golden' },
    spec: { schedule: '', managedDataSource: 'fedora', template: { spec: { source, storage, ...template } } },
  }) as DataImportCron;
const fieldsOf = (cron: DataImportCron) => faultsOf(cronTemplateRules, cron).map(({ field }) => field);

describe('the template of a cron', () => {
  it.each<[rule: string, allowed: DataImportCron, denied: DataImportCron, field: string]>([
    ['32', aCron({}, 'x'.repeat(63)), aCron({}, 'x'.repeat(64)), 'metadata.name'],
    ['35', aCron({ contentType: '' }), aCron({ contentType: 'kubevirt' }), 'spec.template.spec.contentType'],
    [
      '35',
      aCron({ checkpoints: [] }),
      aCron({ checkpoints: [{ previous: '', current: 'a' }] }),
      'spec.template.spec.checkpoints',
    ],
    ['35', aCron(), aCron({ sourceRef: { kind: 'DataSource', name: 'x' } }), 'spec.template.spec.sourceRef'],
    ['35', aCron(), aCron({ finalCheckpoint: true }), 'spec.template.spec.finalCheckpoint'],
    ['36', aCron({ storage: undefined }), aCron({ pvc: storage, storage }), 'spec.template.spec.storage'],
    [
      '36',
      aCron({ storage: undefined, pvc: { ...storage, accessModes: ['ReadWriteOnce'] } }),
      aCron({ storage: undefined, pvc: { accessModes: ['ReadWriteOnce'] } }),
      'spec.template.spec.pvc.resources.requests.storage',
    ],
  ])('is validated by rule %s', (_rule, allowed, denied, field) => {
    expect(fieldsOf(allowed)).toEqual([]);
    expect(fieldsOf(denied)).toContain(field);
  });
});
