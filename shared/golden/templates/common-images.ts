// The golden images every cluster is offered, and the boot sources that common VM templates refer to. Data: edit the tables.
import { type Template, templateAnnotations } from '#shared/golden/templates/template.ts';

interface CommonImage {
  readonly name: string;
  readonly dataSource: string;
  readonly url: string;
  readonly size: string;
  readonly architectures: string;
}

const images: readonly CommonImage[] = [
  {
    name: 'centos-stream10-image-cron',
    dataSource: 'centos-stream10',
    url: 'docker://quay.io/containerdisks/centos-stream:10',
    size: '10Gi',
    architectures: 'amd64,arm64,s390x',
  },
  {
    name: 'centos-stream9-image-cron',
    dataSource: 'centos-stream9',
    url: 'docker://quay.io/containerdisks/centos-stream:9',
    size: '10Gi',
    architectures: 'amd64,arm64,s390x',
  },
  {
    name: 'fedora-image-cron',
    dataSource: 'fedora',
    url: 'docker://quay.io/containerdisks/fedora:latest',
    size: '5Gi',
    architectures: 'arm64,s390x,amd64',
  },
];

/** Its schedule is replaced by the one of the cluster. */
const toTemplate = ({ name, dataSource, url, size, architectures }: CommonImage): Template => ({
  name,
  labels: {},
  annotations: {
    [templateAnnotations.immediateBinding]: 'true',
    [templateAnnotations.architectures]: architectures,
  },
  spec: {
    schedule: '0 */12 * * *',
    managedDataSource: dataSource,
    garbageCollect: 'Outdated',
    retentionPolicy: 'None',
    importsToKeep: 1,
    template: { spec: { source: { registry: { url } }, storage: { resources: { requests: { storage: size } } } } },
  },
});

export const commonTemplates: readonly Template[] = images.map(toTemplate);

/** Names of DataSources that the common VM templates of each architecture refer to. */
export const commonDataSources: Readonly<Record<string, readonly string[]>> = {
  amd64: [
    'centos-stream9',
    'centos6',
    'fedora',
    'opensuse',
    'rhel7',
    'rhel8',
    'rhel9',
    'ubuntu',
    'win10',
    'win11',
    'win2k16',
    'win2k19',
    'win2k22',
    'win2k25',
  ],
  arm64: ['centos-stream9', 'fedora', 'rhel9', 'ubuntu'],
  s390x: ['centos-stream9', 'fedora', 'rhel8', 'rhel9', 'ubuntu'],
};

export const knownArchitectures: readonly string[] = Object.keys(commonDataSources);
