// The known word that somebody probably meant: names of commands, options and reasons are typed by hand.

/** One letter is wrong, missing or too many, or two neighbors are exchanged. */
const isNear = (a: string, b: string): boolean => {
  let start = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end += 1;
  const [left, right] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  return Math.max(left.length, right.length) < 2 || (left.length === 2 && left === `${right[1]}${right[0]}`);
};

/** `; did you mean <word>?`, or nothing where no known word is near. */
export const didYouMean = (word: string, known: readonly string[]): string => {
  // Of two letters, every other word of two letters is near.
  const meant = known.find((one) => one.length > 2 && word.length > 1 && isNear(word.toLowerCase(), one.toLowerCase()));
  return meant === undefined ? '' : `; did you mean ${meant}?`;
};
