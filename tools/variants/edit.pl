#!/usr/bin/perl
# Replaces one statement of one function of a C file. Which one is told by words that it contains in this order; a
# statement is what lies between semicolons and braces, comments aside. Unless exactly one statement of exactly one
# function of this name fits, nothing is changed and the status is 1.
# usage: edit.pl FILE FUNCTION 'WORD...' [STATEMENT]     without a statement the old one is removed
use strict;
use warnings;

die "usage: edit.pl FILE FUNCTION 'WORD...' [STATEMENT]\n" unless @ARGV == 3 || @ARGV == 4;
my ($file, $function, $words, $statement) = (@ARGV, '');
my $fail = sub { print STDERR "$file: $function(): $_[0]\n"; exit 1 };

open(my $in, '<', $file) or die "$file: $!\n";
my $text = do { local $/; <$in> };
close($in);

# Comments as blanks: every place stays where it is.
(my $plain = $text) =~ s{(/\*.*?\*/)}{my $c = $1; $c =~ s/[^\n]/ /g; $c}gse;

my @bodies;
while ($plain =~ /^\w[^\n;{}]*\b\Q$function\E\([^;{}]*\)\s*\n(\{.*?^\})/gms) {
    push @bodies, [$-[1], $+[1]];
}
$fail->(@bodies . ' definitions, not one') unless @bodies == 1;
my ($begin, $end) = @{$bodies[0]};
my $body = substr($plain, $begin, $end - $begin);

my $fits = join '.*?', map { (/^\w/ ? '\b' : '') . quotemeta . (/\w$/ ? '\b' : '') } split ' ', $words;
my @found;
while ($body =~ /([^\s;{}][^;{}]*;)/g) {
    my ($from, $to) = ($-[1], $+[1]);
    push @found, [$begin + $from, $to - $from] if $1 =~ /$fits/s;
}
$fail->(@found . " statements with `$words`, not one") unless @found == 1;
substr($text, $found[0][0], $found[0][1]) = $statement;

open(my $out, '>', "$file.part") or die "$file.part: $!\n";
print $out $text;
close($out) or die "$file.part: $!\n";
rename("$file.part", $file) or die "$file: $!\n";
print "$file: $function(): `$words` ", $statement eq '' ? "removed\n" : "is now `$statement`\n";
