// APIServices: the groups and versions that other servers serve, validated as in kube-aggregator.
import { type ApiObject, type Fields, fieldsAt, numberAt, setDefault, textAt, toText } from '../objects/object.ts';
import { type Cause, invalid, required } from '../schema/cause.ts';
import type { Strategy } from '../registry/resource.ts';
import { specOf, withStatus } from './define.ts';

const nameCauses = (service: ApiObject): Cause[] => {
  const spec = specOf(service);
  const required_ = `${toText(spec['version'])}.${toText(spec['group'])}`;
  const name = service.metadata.name ?? '';
  return name === required_
    ? []
    : [invalid('metadata.name', name, `must be \`spec.version+"."+spec.group\`: "${required_}"`)];
};

const priorityCauses = (spec: Fields): Cause[] => {
  const between = (field: string, most: number): Cause[] => {
    const value = numberAt(spec, field) ?? 0;
    const detail = `must be positive and less than ${most}`;
    return value <= 0 || value > most ? [invalid(`spec.${field}`, value, detail)] : [];
  };
  return [...between('groupPriorityMinimum', 20_000), ...between('versionPriority', 1000)];
};

const serviceCauses = (spec: Fields): Cause[] => {
  const hasBundle = textAt(spec, 'caBundle') !== undefined;
  const isInsecure = spec['insecureSkipTLSVerify'] === true;
  if (spec['service'] === undefined) {
    return [
      ...(hasBundle
        ? [
            invalid(
              'spec.caBundle',
              `${toText(spec['caBundle']).length} bytes`,
              'local APIServices may not have a caBundle',
            ),
          ]
        : []),
      ...(isInsecure
        ? [invalid('spec.insecureSkipTLSVerify', true, 'local APIServices may not have insecureSkipTLSVerify')]
        : []),
    ];
  }
  const service = fieldsAt(spec, 'service');
  const missing = ['namespace', 'name'].filter((key) => (textAt(service, key) ?? '') === '');
  return [
    ...missing.map((key) => required(`spec.service.${key}`)),
    ...(isInsecure && hasBundle
      ? [invalid('spec.insecureSkipTLSVerify', true, 'may not be true if caBundle is present')]
      : []),
  ];
};

export const apiServiceStrategy: Strategy = withStatus({
  defaults: (object) => {
    const { service } = specOf(object);
    if (service !== undefined) setDefault(service as Fields, 'port', 443);
  },
  validate: (object) => {
    const spec = specOf(object);
    return [...nameCauses(object), ...priorityCauses(spec), ...serviceCauses(spec)];
  },
});
