// The CEL environment of an API server: the language plus the functions Kubernetes adds. Called by cel.ts.

import { Environment } from '@marcbachmann/cel-js';
import { registerCollections } from './cel-collections.ts';
import { registerQuantity } from './cel-quantity.ts';
import { registerText } from './cel-text.ts';

let base: Environment | undefined;

/** A fresh environment; what is registered in it stays in it. */
export const createEnvironment = (): Environment => {
  base ??= registerQuantity(
    registerText(
      registerCollections(new Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: false })),
    ),
  );
  return base.clone();
};
