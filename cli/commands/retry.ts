// `bullion retry <image>`: starts a failed import again.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { findImage } from '#cli/image.ts';
import { timeoutOf, waitOptions, waitUntilOver } from '#cli/wait.ts';
import { annotations } from '#shared/api/names.ts';

const run = async ({ kube, namespace, positionals, values, terminal, signal }: Call) => {
  const timeoutMs = timeoutOf(values);
  const found = await findImage(kube, namespace, positionals[0] ?? '');
  const { metadata, status } = found.image;
  if (status?.phase !== 'Failed') {
    const phase = status?.phase ?? 'Pending';
    terminal.err(`Image ${metadata.name} has not failed, it is ${phase}: bullion why ${metadata.name}\n`);
    return exitCodes.failed;
  }
  const value = terminal.now().toISOString();
  const key = { namespace: metadata.namespace, name: metadata.name };
  const patch = {
    metadata: { resourceVersion: metadata.resourceVersion, annotations: { [annotations.retry]: value } },
  };
  const image = await kube.mergePatch(found.type, key, patch);
  terminal.err(`Image ${metadata.name} starts again.\n`);
  if (values['no-wait'] === true) return exitCodes.done;
  return waitUntilOver({ kube, terminal, signal, timeoutMs, retry: value }, { ...found, image });
};

export const retryCommand: ClusterCommand = {
  name: 'retry',
  arguments: '<image>',
  summary: 'Starts a failed import again.',
  options: waitOptions,
  completes: 'images',
  run,
};
