// The result of a parser for hostile input: for properties that permit only acceptance or a known error.
import { isTransferError } from '#shared/transfer/fault.ts';

/** `accepted`, or the code of the TransferError; any other exception is rethrown. */
export const refusalOf = async (work: () => unknown): Promise<string> => {
  try {
    await work();
    return 'accepted';
  } catch (error) {
    if (isTransferError(error)) return error.code;
    throw error;
  }
};
