// `bullion retry <image>`: starts a failed import again.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { printImage } from '#cli/columns.ts';
import { type Image, findImage } from '#cli/image.ts';
import { outputOption } from '#cli/output.ts';
import { timeoutOf, waitOptions, waitUntilOver } from '#cli/wait.ts';
import { annotations } from '#shared/api/names.ts';

const run = async (call: Call) => {
  const { kube, namespace, positionals, values, terminal, signal } = call;
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
  const onEnd = (made: Image): void => printImage(call, made);
  if (values['no-wait'] === true) {
    onEnd(image);
    return exitCodes.done;
  }
  return waitUntilOver({ kube, terminal, signal, timeoutMs, retry: value, onEnd }, { ...found, image });
};

export const retryCommand: ClusterCommand = {
  name: 'retry',
  arguments: '<image>',
  summary: 'Starts a failed import again.',
  options: { ...waitOptions, ...outputOption },
  completes: 'images',
  run,
};
