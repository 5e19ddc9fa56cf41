import { describe, expect, it } from 'vitest';
import { dispositionOf, endingFor, fileNameOf, formOf, standardFor } from '#shared/exchange/download/file-name.ts';

const standard = { format: 'qcow2', compression: 'none' } as const;

describe('the name of a download', () => {
  it.each([
    ['ubuntu', 'qcow2', 'attachment; filename="ubuntu.qcow2"'],
    ['jammy-server.img', 'qcow2', 'attachment; filename="jammy-server.qcow2"'],
    ['disk.raw.xz', 'raw.gz', 'attachment; filename="disk.raw.gz"'],
    ['release 9.2', 'raw', 'attachment; filename="release 9.2.raw"'],
    ['Größe', 'qcow2', `attachment; filename="Gro_e.qcow2"; filename*=UTF-8''Gr%C3%B6%C3%9Fe.qcow2`],
    ['日本', 'raw', `attachment; filename="__.raw"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.raw`],
    ['../../etc/passwd', 'raw', 'attachment; filename="_.._etc_passwd.raw"'],
    ['a"b\r\nSet-Cookie: x', 'raw', 'attachment; filename="a_b_Set-Cookie_ x.raw"'],
    ["it's (50%)", 'raw', `attachment; filename="it's (50_).raw"; filename*=UTF-8''it%27s%20%2850%25%29.raw`],
    ['.img', 'raw', 'attachment; filename="disk.raw"'],
  ])('%s as %s', (displayName, extension, header) => {
    expect(dispositionOf(fileNameOf(displayName, extension))).toBe(header);
  });
});

describe('an ISO image', () => {
  it.each([
    ['iso', 'raw', 'winiso.iso'],
    ['iso', 'raw.gz', 'winiso.iso.gz'],
    // Requested: the content of the file is a qcow2.
    ['iso', 'qcow2', 'winiso.qcow2'],
    ['qcow2', 'raw', 'winiso.raw'],
    [undefined, 'raw', 'winiso.raw'],
  ])('made from %s has the extension of its content as %s', (sourceFormat, extension, name) => {
    expect(fileNameOf('winiso.iso', endingFor(sourceFormat, extension))).toBe(name);
  });

  it.each([
    ['iso', standard, { format: 'raw', compression: 'none' }],
    ['iso', { format: 'raw', compression: 'gz' } as const, { format: 'raw', compression: 'gz' }],
    ['raw', standard, standard],
  ])('is downloaded as it is unless another form is requested: %s', (sourceFormat, given, form) => {
    expect(formOf(new URLSearchParams(), standardFor(sourceFormat, given))).toEqual(form);
  });
});

describe('the requested form', () => {
  it.each([
    ['', standard],
    ['compression=zstd', { format: 'qcow2', compression: 'zstd' }],
    ['compression=gz&level=9', { format: 'raw', compression: 'gz', level: 9 }],
    ['format=raw', { format: 'raw', compression: 'none' }],
  ])('%s', (query, form) => {
    expect(formOf(new URLSearchParams(query), standard)).toEqual(form);
  });

  it.each([
    'format=vmdk',
    'format=raw&compression=zlib',
    'format=qcow2&compression=gz',
    'compression=gz&level=19',
    'level=x',
  ])('%s is rejected', (query) => {
    expect(() => formOf(new URLSearchParams(query), standard)).toThrow(/format is qcow2/);
  });
});
