<?php

declare(strict_types=1);

namespace ReviewRelay;

/** A delivery without a valid signature, or one that is too old. Answer it with 401. */
final class SignatureError extends \RuntimeException
{
}
