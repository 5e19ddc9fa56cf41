import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { lateSchemaModule, withLateSchemas } from '#infra/bundle/late-schemas.ts';

type Late = <T>(make: () => T) => T;

/** The module as bundles have it. */
const load = async (): Promise<Late> => {
  const url = `data:text/javascript,${encodeURIComponent(lateSchemaModule)}`;
  return ((await import(url)) as { readonly late: Late }).late;
};

const head = `import { late } from 'bullion:late-schema';\n`;

describe('lazy schemas', () => {
  it.each([
    [
      'of one line',
      'export const Port = z.number();\n',
      'export const Port = /* @__PURE__ */ late(() => z.number());\n',
    ],
    [
      'of several',
      'const Claim = z.object({\n  name: z.string()\n});\nconst after = 1;\n',
      'const Claim = /* @__PURE__ */ late(() => z.object({\n  name: z.string()\n}));\nconst after = 1;\n',
    ],
    [
      'one after the other',
      'const A = z.string();\nconst B = z.array(A);\n',
      'const A = /* @__PURE__ */ late(() => z.string());\nconst B = /* @__PURE__ */ late(() => z.array(A));\n',
    ],
    [
      'derived from another one',
      'const B = A.extend({\n  name: z.string()\n});\n',
      'const B = /* @__PURE__ */ late(() => A.extend({\n  name: z.string()\n}));\n',
    ],
    [
      'of which only the fields are declared',
      'const shape = {\n  name: z.string(),\n  of: A.optional()\n};\n',
      'const shape = /* @__PURE__ */ late(() => ({\n  name: z.string(),\n  of: A.optional()\n}));\n',
    ],
    [
      'of which only the fields are declared, on one line',
      'const shape = { name: z.string() };\n',
      'const shape = /* @__PURE__ */ late(() => ({ name: z.string() }));\n',
    ],
  ])('a schema %s is created when it is first used', (_what, code, changed) => {
    expect(withLateSchemas(code)).toBe(head + changed);
  });

  it.each([
    'const parse = (text) => z.string().parse(text);\n',
    'const size = 3;\n',
    '  const Inner = z.string();\n',
    'const kind = { type: 3 };\n',
  ])('%j is left unchanged', (code) => {
    expect(withLateSchemas(code)).toBe(code);
  });

  it('behave like schemas in whatever they are part of', async () => {
    const late = await load();
    let made = 0;
    const A = late(() => {
      made += 1;
      return z.object({ is: z.literal('a'), size: z.number().int().default(3) });
    });
    const B = late(() => z.object({ is: z.literal('b'), of: A.optional() }));
    const Either = late(() => z.discriminatedUnion('is', [A, B]));
    const More = late(() => A.extend({ name: z.string() }));
    expect(made).toBe(0);
    expect(Either.parse({ is: 'b', of: { is: 'a' } })).toEqual({ is: 'b', of: { is: 'a', size: 3 } });
    expect(More.safeParse({ is: 'a', size: 1.5 }).error?.issues.map(({ path }) => path.join('.'))).toEqual([
      'size',
      'name',
    ]);
    expect(z.record(z.string(), A).parse({ x: { is: 'a', size: 1 } })).toEqual({ x: { is: 'a', size: 1 } });
    expect(z.looseObject({ ...A.shape, a: z.lazy(() => A) }).parse({ is: 'a', a: { is: 'a' } })).toMatchObject({
      size: 3,
    });
    expect(A instanceof z.ZodObject).toBe(true);
    const shape = late(() => ({ size: z.number(), name: z.string() }));
    expect(z.object({ ...shape, own: z.string() }).safeParse({}).error?.issues).toHaveLength(3);
    expect(z.object(shape).parse({ size: 1, name: 'x' })).toEqual({ size: 1, name: 'x' });
    expect('size' in shape && Object.keys(shape)).toEqual(['size', 'name']);
    expect(made).toBe(1);
  });
});
