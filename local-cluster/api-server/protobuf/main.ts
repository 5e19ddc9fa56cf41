// Reads the Go types of Kubernetes and writes messages.json: for each message its fields as `number:name:type`. A `!` after the number: a zero
// value is meaningful. An empty name: the fields of the message belong to the enclosing one. Run manually when the version changes: `node
// local-cluster/api-server/protobuf/main.ts <folder of k8s.io modules> <version>`, e.g. `$(go env GOMODCACHE)/k8s.io v0.36.3`.
// value means something. An empty name: the fields of the message belong to the one around it. Run by hand when the version changes: `node local-cluster/api-server/protobuf/main.ts <folder of k8s.io modules> <version>`, e.g. `$(go env GOMODCACHE)/k8s.io v0.36.3`.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Go package → its folder; the name is the prefix of messages in the table. */
const packages: Readonly<Record<string, string>> = {
  admissionregistration: 'api@/admissionregistration/v1/types.go',
  apps: 'api@/apps/v1/types.go',
  authentication: 'api@/authentication/v1/types.go',
  authorization: 'api@/authorization/v1/types.go',
  autoscaling: 'api@/autoscaling/v1/types.go',
  batch: 'api@/batch/v1/types.go',
  coordination: 'api@/coordination/v1/types.go',
  core: 'api@/core/v1/types.go',
  events: 'api@/events/v1/types.go',
  meta: 'apimachinery@/pkg/apis/meta/v1/types.go',
  networking: 'api@/networking/v1/types.go',
  policy: 'api@/policy/v1/types.go',
  rbac: 'api@/rbac/v1/types.go',
  scheduling: 'api@/scheduling/v1/types.go',
  storage: 'api@/storage/v1/types.go',
};

/** The messages that clients send as protobuf. */
const roots = `
  core.ConfigMap core.Endpoints core.Event core.LimitRange core.Namespace core.Node core.PersistentVolume
  core.PersistentVolumeClaim core.Pod core.ResourceQuota core.Secret core.Service core.ServiceAccount core.Binding
  apps.DaemonSet apps.Deployment apps.ReplicaSet apps.StatefulSet
  authentication.SelfSubjectReview authentication.TokenRequest authentication.TokenReview
  authorization.LocalSubjectAccessReview authorization.SelfSubjectAccessReview
  authorization.SelfSubjectRulesReview authorization.SubjectAccessReview
  autoscaling.Scale batch.CronJob batch.Job coordination.Lease events.Event meta.DeleteOptions
  networking.Ingress networking.NetworkPolicy policy.Eviction policy.PodDisruptionBudget
  rbac.ClusterRole rbac.ClusterRoleBinding rbac.Role rbac.RoleBinding scheduling.PriorityClass
  storage.CSIDriver storage.StorageClass
  admissionregistration.MutatingWebhookConfiguration admissionregistration.ValidatingWebhookConfiguration`
  .trim()
  .split(/\s+/);

const imports: Readonly<Record<string, string>> = { metav1: 'meta', v1: 'core', corev1: 'core', api: 'core' };
const scalars: Readonly<Record<string, string>> = { varint: 'int', bytes: 'string', fixed64: 'double' };
/** Lists of strings that are messages on the wire. */
const extraValues = new Set(['authentication.ExtraValue', 'authorization.ExtraValue']);
const special = new Set([
  'resource.Quantity',
  'intstr.IntOrString',
  'runtime.RawExtension',
  'meta.Time',
  'meta.MicroTime',
  'meta.FieldsV1',
]);

interface Declared {
  readonly structs: ReadonlyMap<string, string>;
  /** Named types other than structs, such as `ResourceList`. */
  readonly aliases: ReadonlyMap<string, string>;
}

const parseFile = (name: string, text: string): Declared => {
  const structs = new Map<string, string>();
  const aliases = new Map<string, string>();
  for (const [, type = '', body = ''] of text.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm))
    structs.set(`${name}.${type}`, body);
  for (const [, type = '', to = ''] of text.matchAll(/^type (\w+) ((?:map|\[\])\S+)/gm))
    aliases.set(`${name}.${type}`, to);
  return { structs, aliases };
};

const qualify = (type: string, within: string): string => {
  const [first = '', second] = type.split('.');
  return second === undefined ? `${within}.${first}` : `${imports[first] ?? first}.${second}`;
};

const main = (folder: string, version: string): string => {
  const declared = Object.entries(packages).map(([name, path]) =>
    parseFile(name, readFileSync(join(folder, path.replace('@', `@${version}`)), 'utf8')),
  );
  const structs = new Map(declared.flatMap((file) => [...file.structs]));
  const aliases = new Map(declared.flatMap((file) => [...file.aliases]));
  const messages = new Map<string, string>();

  const namedType = (name: string, wire: string): string => {
    const alias = aliases.get(name);
    if (extraValues.has(name)) return 'strings';
    if (alias !== undefined) return typeOf(alias, wire, name.split('.')[0] ?? '');
    if (special.has(name)) return name;
    if (!structs.has(name)) return scalars[wire] ?? 'string';
    addMessage(name);
    return name;
  };

  const typeOf = (goType: string, wire: string, within: string): string => {
    const list = /^\[\](?!byte)(.*)$/.exec(goType)?.[1];
    if (list !== undefined) return `[]${typeOf(list, wire, within)}`;
    const map = /^map\[[\w.]+\](.*)$/.exec(goType)?.[1];
    if (map !== undefined) return `{}${typeOf(map, 'bytes', within)}`;
    if (goType === '[]byte') return 'bytes';
    return goType === 'bool' ? 'bool' : namedType(qualify(goType, within), wire);
  };

  const field = (line: string, within: string): string[] => {
    const found = /^\s*(\w+ )?\s*(\*?)([\w.[\]*]+)\s+`json:"([^",]*)([^"]*)"[^`]*protobuf:"(\w+),(\d+),/.exec(line);
    if (found === null) return [];
    const [, , pointer = '', goType = '', json = '', flags = '', wire = '', number = ''] = found;
    const keeps = pointer === '*' || !flags.includes('omitempty') ? '!' : '';
    return [`${number}${keeps}:${json}:${typeOf(goType.replace(/^\*/, ''), wire, within)}`];
  };

  const addMessage = (name: string): void => {
    if (messages.has(name)) return;
    messages.set(name, '');
    const within = name.split('.')[0] ?? '';
    const body = structs.get(name);
    if (body === undefined) throw new InvalidInput(`no Go type ${name} below ${folder}`);
    messages.set(
      name,
      body
        .split('\n')
        .flatMap((line) => field(line, within))
        .join(' '),
    );
  };

  roots.forEach(addMessage);
  const sorted = Object.fromEntries([...messages].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  return `${JSON.stringify(sorted, undefined, 2)}\n`;
};

const [folder = '', version = ''] = process.argv.slice(2);
writeFileSync(join(import.meta.dirname, 'messages.json'), main(folder, version));
