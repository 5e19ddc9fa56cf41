import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMeter, createScale } from './meter.ts';
import { TransferProgress } from './report.ts';

const setup = () => {
  const clock = { now: Date.parse('2026-12-01T10:00:00Z') };
  const sent: TransferProgress[] = [];
  const wire = { received: 0 };
  const meter = createMeter({
    run: 'r',
    now: () => clock.now,
    send: async (progress) => void sent.push(TransferProgress.parse(progress)),
    receivedBytes: () => wire.received,
  });
  const pass = (seconds: number, bytes: number) => {
    clock.now += seconds * 1000;
    wire.received += bytes;
  };
  return { meter, sent, pass };
};

describe('the meter', () => {
  it('reports speed and remaining time of a download', () => {
    const { meter, sent, pass } = setup();
    meter.enter('Downloading', 97);
    meter.expect(1000);
    pass(2, 200);
    meter.advance(0.2);
    meter.tick();
    expect(sent.at(-1)).toMatchObject({
      phase: 'Downloading',
      bytesPerSecond: 100,
      etaSeconds: 8,
      totalBytes: 1000,
      percent: 19.4,
    });
  });

  it('reports that a download has stalled', () => {
    const { meter, sent, pass } = setup();
    meter.enter('Downloading', 97);
    pass(2, 200);
    meter.tick();
    for (let tick = 0; tick < 20; tick++) {
      pass(2, 0);
      meter.tick();
    }
    expect(sent.at(-1)?.bytesPerSecond).toBe(0);
  });

  it('reports how long nothing has arrived, until something does or the download ends', () => {
    const { meter, sent, pass } = setup();
    const noteAfter = (seconds: number, bytes: number, fraction = 0.2) => {
      pass(seconds, bytes);
      meter.advance(fraction);
      meter.tick();
      return sent.at(-1)?.note;
    };
    meter.enter('Downloading', 97);
    expect(noteAfter(2, 200)).toBeUndefined();
    expect(noteAfter(9, 0)).toBeUndefined();
    expect(noteAfter(14, 0)).toBe('nothing received for more than 20 s');
    expect(noteAfter(2, 1)).toBeUndefined();
    expect(noteAfter(60, 0, 1)).toBeUndefined();
  });

  it('reports no speed while it converts', () => {
    const { meter, sent, pass } = setup();
    meter.enter('Converting', 95);
    pass(2, 0);
    meter.advance(0.5);
    meter.tick();
    expect(sent.at(-1)).toMatchObject({ phase: 'Converting', percent: 47.5, etaSeconds: 2 });
    expect(sent.at(-1)).not.toHaveProperty('bytesPerSecond');
  });

  it('includes inspection and note until the note is removed', () => {
    const { meter, sent } = setup();
    void meter.inspected({ format: 'raw', compression: 'none', size: 5 });
    meter.note('cut');
    meter.tick();
    meter.note(undefined);
    meter.tick();
    expect(sent.map(({ note }) => note)).toEqual([undefined, 'cut', undefined]);
    expect(sent.every(({ inspection }) => inspection?.size === 5)).toBe(true);
    expect(sent.map(({ sequence }) => sequence)).toEqual([0, 1, 2]);
  });
});

describe('the scale', () => {
  it('never decreases and never reaches 100, whatever the calls', () => {
    const step = fc.oneof(
      fc.record({ begin: fc.double({ min: 0, max: 200, noNaN: true }) }),
      fc.record({ advance: fc.double({ min: -1, max: 3, noNaN: true }) }),
    );
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const scale = createScale();
        let last = 0;
        for (const next of steps) {
          if ('begin' in next) scale.begin(next.begin);
          else scale.advance(next.advance);
          const percent = scale.percent();
          expect(percent).toBeGreaterThanOrEqual(last);
          expect(percent).toBeLessThanOrEqual(99);
          last = percent;
        }
      }),
    );
  });
});
