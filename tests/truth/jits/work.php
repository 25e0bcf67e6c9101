<?php
class Work {
    public $n = 0;

    function outer($x)
    {
        $sum = 0;
        foreach ([1, 2, 3, 4] as $v)
            $sum += $this->inner($v * $x);
        return $sum;
    }

    function inner($y)
    {
        $sum = 0;
        for ($i = 0; $i < 30; $i++)
            $sum += ($y ^ $i) % 7;
        usort($GLOBALS['list'], fn($a, $b) => $a <=> $b);
        return $sum;
    }
}

$list = range(1, 10);
$work = new Work;
for (;;)
    $work->outer(mt_rand());
