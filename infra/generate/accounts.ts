// The README table of what each service account may do, from the very roles that are installed. Called by blocks.ts.
import { parseAllDocuments } from 'yaml';
import { manifestOutputs } from '#infra/generate/outputs.ts';
import { toTable } from '#infra/generate/readme.ts';

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules: readonly Rule[];
}

const reading = new Set(['get', 'list', 'watch']);

const listOf = (names: readonly string[]): string => {
  const unique = [...new Set(names)].toSorted();
  return unique.length === 0 ? 'nothing' : unique.map((name) => `\`${name}\``).join(', ');
};

const having = ({ rules }: Role, isMeant: (verb: string) => boolean): readonly string[] =>
  rules.filter(({ verbs }) => verbs.some(isMeant)).flatMap(({ resources }) => resources);

/** Roles of people (`users.yaml`) are not accounts. */
export const toAccountTable = (): string => {
  const roles = Object.entries(manifestOutputs())
    .filter(([path]) => path.startsWith('infra/rbac/') && !path.endsWith('/users.yaml'))
    .flatMap(([, text]) => parseAllDocuments(text).map((document) => document.toJS() as Role))
    .filter(({ kind }) => kind === 'ClusterRole');
  const header = ['account', 'may create', 'may change', 'may delete', 'may read'];
  return toTable(
    header,
    roles.map((role) => [
      `\`${role.metadata.name.replace('bullion-', '')}\``,
      listOf(having(role, (verb) => verb === 'create')),
      listOf(having(role, (verb) => verb === 'update' || verb === 'patch')),
      listOf(having(role, (verb) => verb === 'delete')),
      listOf(having(role, (verb) => reading.has(verb))),
    ]),
  );
};
