// Schemas, and fields of schemas, that are made when they are first used: making all of them took half of what a start evaluates, and a request needs a few. Called by
// plugin.ts.

/** What the changed sources take `late` from. */
export const lateSchemaPath = 'bullion:late-schema';

/**
 * Stands for a schema until it is asked something. Schemas that hold it ask it each time they are used, which costs less than a tenth of a
 * microsecond.
 */
export const lateSchemaModule = `export const late = (make) => {
  let made;
  const real = () => (made ??= make());
  return new Proxy({}, {
    get: (_, key) => real()[key],
    set: (_, key, value) => Reflect.set(real(), key, value),
    has: (_, key) => Reflect.has(real(), key),
    getPrototypeOf: () => Reflect.getPrototypeOf(real()),
    ownKeys: () => Reflect.ownKeys(real()),
    getOwnPropertyDescriptor: (_, key) => {
      const found = Reflect.getOwnPropertyDescriptor(real(), key);
      return found && { ...found, configurable: true };
    },
  });
};`;

/** A schema at the top of a module, as esbuild prints it: on one line, or up to the first line that begins with what closes it. */
const schema = /^((?:export )?const \w+ = )((?:z|[A-Z]\w*(?=\.extend\())\.(?:.*|.*\n(?:[ \t}\])].*\n)*?[}\])].*));$/gm;

/** Fields that several schemas share, likewise: an object whose first field is a schema or a setting. */
const shape =
  /^((?:export )?const \w+ = )(\{\s+(?:\/\*\*.*\*\/\s+)?\w+: (?:z\.|setting\(|[A-Z]\w*\.optional\(|[A-Z]\w*\.describe\()(?:.*|.*\n(?:[ \t}\])].*\n)*?)\});$/gm;

/** Of JavaScript that esbuild printed. */
export const withLateSchemas = (code: string): string => {
  const changed = code
    .replace(schema, (_, head: string, made: string) => `${head}/* @__PURE__ */ late(() => ${made});`)
    .replace(shape, (_, head: string, made: string) => `${head}/* @__PURE__ */ late(() => (${made}));`);
  return changed === code ? code : `import { late } from '${lateSchemaPath}';\n${changed}`;
};
