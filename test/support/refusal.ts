// What a parser made of hostile input: for properties that allow it to accept or to refuse, and nothing else.
import { isTransferError } from '#shared/transfer/fault.ts';

/** `accepted`, or the code of the TransferError; anything else that is thrown is thrown on. */
export const refusalOf = async (work: () => unknown): Promise<string> => {
  try {
    await work();
    return 'accepted';
  } catch (error) {
    if (isTransferError(error)) return error.code;
    throw error;
  }
};
